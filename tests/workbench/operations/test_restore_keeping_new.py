"""What was made since a checkpoint stays, and what that keeps in place stays, too."""

from __future__ import annotations

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.model import Change, Entry, Sort
from holdfast.workbench.operations.restore import without_removals

FILE = Entry(Sort.FILE, 0o644, content=b"1")
DIRECTORY = Entry(Sort.DIRECTORY, 0o755)
CLOSED = Entry(Sort.DIRECTORY, 0o700)
at = RelativePath.of


@pytest.mark.promise("W3")
def test_nothing_is_removed() -> None:
    comes = Change(at("comes"), None, FILE)
    mode = Change(at("kept"), DIRECTORY, CLOSED)
    changes = (
        comes,
        Change(at("d"), DIRECTORY, FILE),
        Change(at("d/new"), FILE, None),
        mode,
        Change(at("kept/new"), FILE, None),
    )
    assert without_removals(changes) == ((comes, mode), [at("d"), at("d/new"), at("kept/new")])
