"""What a restore would do, laid out."""

from __future__ import annotations

import pytest

from holdfast.cli.render.changes import ChangedFile, restore_page, sorted_changes
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathEntry

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
FILE = PathEntry(EntryKind.FILE, 0o644, content=b"1", size=1)
OTHER = PathEntry(EntryKind.FILE, 0o644, content=b"2", size=1)
at = RelativePath.of


@pytest.mark.promise("W3")
def test_what_comes_changes_and_goes_is_told_apart() -> None:
    comes = ChangedFile(path=at("c"), before=None, after=FILE)
    changes = ChangedFile(path=at("m"), before=FILE, after=OTHER, added=1, removed=1)
    goes = ChangedFile(path=at(b"g\x1b"), before=FILE, after=None)
    assert sorted_changes([goes, comes, changes]) == ((comes,), (changes,), (goes,))
    page = restore_page([comes, changes, goes], [at("s")], "cp_1", PAGE)
    heads = [line for line in page.splitlines() if line.endswith(":")]
    assert heads == [
        "Comes back:",
        "Changes:",
        "Goes, because it was made since (--keep-new keeps it):",
        "Stays as it is:",
    ]
    assert "\x1b" not in page


def test_of_very_many_the_rest_is_counted() -> None:
    many = [ChangedFile(path=at(f"f{n}"), before=FILE, after=None) for n in range(250)]
    assert "and 50 more; holdfast checkpoint diff cp_1 shows all" in restore_page(
        many, [], "cp_1", PAGE
    )
