"""Of a repository's configuration only data gets through."""

from __future__ import annotations

import pytest

from holdfast.workbench.git.plans import clean_config, has_logs, settings_in, unknown_extension


@pytest.mark.promise("W14")
def test_programs_do_not_get_through() -> None:
    listing = (
        b"core.hooksPath\n/evil\0core.fsmonitor\n/evil\0filter.x.clean\n/evil\0"
        b"include.path\n/evil\0core.sharedRepository\ngroup\0core.sharedRepository\n0660\0"
        b"extensions.objectformat\nsha256\0core.bare\0"
    )
    config = clean_config(settings_in(listing))
    assert b"evil" not in config and b"include" not in config
    assert config.endswith(
        b'[core]\n\tsharedrepository = "0660"\n[extensions]\n\tobjectformat = "sha256"\n'
    )


def test_a_value_cannot_end_its_line() -> None:
    config = clean_config({b"core.sharedrepository": b'"\n[core]\n\thooksPath=/x\\'})
    assert config.splitlines()[-1] == (b'\tsharedrepository = "\\"\\n[core]\\n\thooksPath=/x\\\\"')


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"extensions.objectformat", None),
        (b"extensions.partialclone", None),
        (b"extensions.worktreeconfig", None),
        (b"extensions.novel", "novel"),
        (b"core.extensions", None),
    ],
)
def test_an_extension_that_is_not_known_is_named(key: bytes, expected: str | None) -> None:
    assert unknown_extension({key: b"1"}) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(b"false", False), (b"always", True), (None, True)]
)
def test_refs_have_logs_unless_it_says_otherwise(value: bytes | None, expected: bool) -> None:
    assert has_logs({} if value is None else {b"core.logallrefupdates": value}) is expected
