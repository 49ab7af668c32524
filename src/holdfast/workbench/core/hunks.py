"""Take a part of what changed in a file: its hunks have numbers, from 1."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.nouns import RelativePath
from holdfast.workbench.core.diff import hunks, with_hunks
from holdfast.workbench.core.merge import is_text
from holdfast.workbench.failures import HunkMissing


def picked(path: RelativePath, before: bytes, after: bytes, numbers: Collection[int]) -> bytes:
    """The file as it was, with these of its hunks; refused if it has not all of them."""
    found = hunks(before, after) if is_text(before) and is_text(after) else ()
    for number in sorted(numbers):
        if not 1 <= number <= len(found):
            raise HunkMissing(path=str(path), number=number, count=len(found))
    return with_hunks(before, [found[number - 1] for number in numbers])
