"""Changes as people see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.model import Change, Entry, Sort
from holdfast.workbench.showing import FileDiff, file_diffs
from holdfast.workbench.store import Store
from tests.workbench.modelled import at, directory, link

LONG = 8 * 2**20 + 1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def kept(store: Store, data: bytes) -> Entry:
    content, size = store.put_content([data])
    return Entry(Sort.FILE, 0o644, content=content, size=size)


def test_a_text_line_by_line(store: Store) -> None:
    before, after = kept(store, b"1\n2\n"), kept(store, b"1\nzwei\n3\n")

    (shown,) = file_diffs(store, [Change(at("x"), before, after)])

    text = b"--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ change 1\n 1\n-2\n+zwei\n+3\n"
    assert shown == FileDiff(
        path=at("x"), before=before, after=after, text=text, added=2, removed=1, hunks=1
    )


@pytest.mark.parametrize("data", [b"\0", bytes(LONG)])
def test_what_has_no_lines_is_named(store: Store, data: bytes) -> None:
    before, after = kept(store, b"1\n"), kept(store, data)

    for change in (Change(at("x"), before, after), Change(at("x"), None, after)):
        (shown,) = file_diffs(store, [change])
        assert (shown.is_binary, shown.hunks) == (True, 0)


def test_what_is_no_file_has_no_text(store: Store) -> None:
    data = kept(store, b"1\n")
    mode = Entry(Sort.FILE, 0o755, content=data.content, size=data.size)
    plain = [
        Change(at("a"), data, mode),
        Change(at("b"), None, directory()),
        Change(at("c"), link("x"), link("y")),
    ]

    assert file_diffs(store, plain) == tuple(
        FileDiff(path=one.path, before=one.before, after=one.after) for one in plain
    )


def test_a_file_that_becomes_a_link_goes(store: Store) -> None:
    (shown,) = file_diffs(store, [Change(at("x"), kept(store, b"1\n"), link("y"))])

    assert (shown.added, shown.removed) == (0, 1)
