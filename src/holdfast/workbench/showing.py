"""Changes as they are shown to people: texts line by line, all else by what became of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.nouns import RelativePath
from holdfast.workbench.core.diff import unified
from holdfast.workbench.knowing import text_of
from holdfast.workbench.model import Change, Entry, Sort
from holdfast.workbench.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """What changed at one path: what was there, what is, and of a text how, line by line.

    Its hunks have numbers, from 1 to `hunks`, by which they can be published one by one. `text` is
    empty if only the mode changed or if it is no file; what is too long is counted, not shown.
    """

    path: RelativePath
    before: Entry | None
    after: Entry | None
    text: bytes = b""
    added: int = 0
    removed: int = 0
    hunks: int = 0
    lines_left_out: int = 0
    is_binary: bool = False


def file_diffs(store: Store, changes: Iterable[Change]) -> tuple[FileDiff, ...]:
    """Changes as they are shown."""
    return tuple(_file_diff(store, change) for change in changes)


def _file_diff(store: Store, change: Change) -> FileDiff:
    before, after = change.before, change.after
    files = [one for one in (before, after) if one and one.sort is Sort.FILE]
    is_same = before and after and before.content == after.content
    if not files or is_same:
        return FileDiff(path=change.path, before=before, after=after)
    old, new = text_of(store, before), text_of(store, after)
    is_long = (old is None and before in files) or (new is None and after in files)
    if is_long:
        return FileDiff(path=change.path, before=before, after=after, is_binary=True)
    shown = unified(old, new, change.path.raw)
    return FileDiff(
        path=change.path,
        before=before,
        after=after,
        text=shown.text,
        added=shown.added,
        removed=shown.removed,
        hunks=shown.hunks,
        lines_left_out=shown.lines_left_out,
        is_binary=not shown.hunks,
    )
