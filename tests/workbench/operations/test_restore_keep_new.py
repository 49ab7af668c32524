"""What was made since a checkpoint stays, and what that keeps in place stays, too."""

from __future__ import annotations

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathChange, PathEntry
from holdfast.workbench.operations.restore import without_removals

FILE = PathEntry(EntryKind.FILE, 0o644, content=b"1")
DIRECTORY = PathEntry(EntryKind.DIRECTORY, 0o755)
CLOSED = PathEntry(EntryKind.DIRECTORY, 0o700)
at = RelativePath.of


@pytest.mark.promise("W3")
def test_nothing_is_removed() -> None:
    comes = PathChange(at("comes"), None, FILE)
    mode = PathChange(at("kept"), DIRECTORY, CLOSED)
    changes = (
        comes,
        PathChange(at("d"), DIRECTORY, FILE),
        PathChange(at("d/new"), FILE, None),
        mode,
        PathChange(at("kept/new"), FILE, None),
    )
    assert without_removals(changes) == ((comes, mode), [at("d"), at("d/new"), at("kept/new")])
