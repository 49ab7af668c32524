"""Restore a checkpoint and keep what was made since."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.nouns import RelativePath
from holdfast.workbench.core.three_way import above_of
from holdfast.workbench.model import Change


def without_removals(
    changes: Sequence[Change],
) -> tuple[tuple[Change, ...], list[RelativePath]]:
    """The changes that remove nothing, and what is left as it is because of that.

    A directory that something new is in stays a directory, also where the checkpoint has a file.
    """
    new = {change.path for change in changes if change.after is None}
    above = {each for path in new for each in above_of(path)}
    left = new | {
        change.path
        for change in changes
        if change.path in above and not (change.after is not None and change.after.is_directory)
    }
    return tuple(change for change in changes if change.path not in left), sorted(left)
