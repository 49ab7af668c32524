"""What the workbench speaks of is compared by what a reader could tell apart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.workbench.model import EntryKind, PathEntry

FILE = PathEntry(EntryKind.FILE, 0o644, b"a" * 32, size=1, mtime_ns=2)


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (FILE, True),
        (replace(FILE, size=9, mtime_ns=9), True),
        (replace(FILE, mode=0o600), False),
        (replace(FILE, content=b"b" * 32), False),
        (replace(FILE, xattrs=((b"user.a", b""),)), False),
        (PathEntry(EntryKind.LINK, 0o644, target=b"a"), False),
        (PathEntry(EntryKind.LINK, 0o644, b"a" * 32), False),
        (None, False),
        ("file", False),
    ],
)
def test_entries_are_the_same_if_only_their_times_differ(other: object, is_same: bool) -> None:
    assert (other == FILE) is is_same
    assert (other != FILE) is not is_same
    assert (other in {FILE}) is is_same


def test_an_entry_stays_as_it_is() -> None:
    with pytest.raises(AttributeError):
        FILE.mode = 0  # type: ignore[misc]  # that is what is refused
