"""The keys that leave a process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.commands.escape_keys import Escape


@pytest.mark.parametrize(
    ("typed", "passed", "has_left"),
    [
        ([b"ls\r"], b"ls\r", False),
        ([b"~."], b"", True),
        ([b"ls\r~.more"], b"ls\r", True),
        ([b"ls\r", b"~", b"."], b"ls\r", True),
        ([b"ls ~."], b"ls ~.", False),
        ([b"\r~/x"], b"\r~/x", False),
        ([b"\r~~."], b"\r~.", False),
        ([b"\r~\r~."], b"\r~\r", True),
    ],
)
def test_meaning(typed: list[bytes], passed: bytes, has_left: bool) -> None:
    escape = Escape()

    assert b"".join(escape.pass_on(each) for each in typed) == passed
    assert escape.has_left == has_left


@given(st.lists(st.text(alphabet="a~.\r\n").map(str.encode)))
def test_how_keys_are_cut_changes_nothing(typed: list[bytes]) -> None:
    cut, whole = Escape(), Escape()

    assert b"".join(map(cut.pass_on, typed)) == whole.pass_on(b"".join(typed))
    assert cut.has_left == whole.has_left
