"""Check a batch of file changes against a draft: all of it fits, or none of it is done.

The changes of a batch follow one another: what an earlier one made, a later one finds. What comes
out is one change for each path, which a transaction brings about as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import BatchRefused, BatchStale
from holdfast.workbench.model import EntryKind, PathChange, PathEntry

Tree = Mapping[RelativePath, PathEntry]
_MODE_MAX: Final = 0o7777
_NEW_DIRECTORY: Final = PathEntry(EntryKind.DIRECTORY, 0o755)


@dataclass(frozen=True, slots=True)
class Create:
    """Something new, where nothing is; directories on the way are made."""

    path: RelativePath
    entry: PathEntry


@dataclass(frozen=True, slots=True)
class Update:
    """Other bytes in a file that is there; with `expected`, only if it still has these."""

    path: RelativePath
    content: bytes
    size: int
    expected: bytes | None = None


@dataclass(frozen=True, slots=True)
class DeletePath:
    """Nothing any more where a file or an empty directory is."""

    path: RelativePath


@dataclass(frozen=True, slots=True)
class Rename:
    """Another name, where nothing is, for a file or a directory with all that is in it."""

    path: RelativePath
    target: RelativePath


@dataclass(frozen=True, slots=True)
class Chmod:
    """Another mode for a file or a directory."""

    path: RelativePath
    mode: int


BatchStep = Create | Update | DeletePath | Rename | Chmod


class BatchRetry(StrEnum):
    """What is to be done with a batch that was begun before."""

    APPLY = "apply"  # the draft is as it was
    DONE = "done"  # it is as the batch left it: only the word of it was lost


class _UnfitError(ValueError):
    """A step does not fit, in words; it never leaves this module."""


def changes_of(steps: Sequence[BatchStep], draft: Tree) -> tuple[PathChange, ...]:
    """What a batch does to a draft, for each path; refused, with every reason, if it cannot be."""
    staged = _Staged(draft)
    reasons: list[str] = []
    for number, step in enumerate(steps, start=1):
        try:
            staged.take(step)
        except _UnfitError as unfit:
            reasons.append(f"change {number} ({step.path}): {unfit}")
    if reasons or not steps:
        raise BatchRefused(reasons=tuple(reasons) or ("it is empty",))
    return staged.changes()


def check_retry(changes: Iterable[PathChange], draft: Tree) -> BatchRetry:
    """Whether a batch still fits the draft it was made for; stale, with the paths, if not."""
    changes = tuple(changes)
    if all(draft.get(change.path) == change.before for change in changes):
        return BatchRetry.APPLY
    if all(draft.get(change.path) == change.after for change in changes):
        return BatchRetry.DONE
    moved = [change for change in changes if draft.get(change.path) != change.before]
    raise BatchStale(paths=tuple(str(change.path) for change in moved))


class _Staged:
    """A draft with the steps so far, of which only the differences are held."""

    def __init__(self, draft: Tree) -> None:
        self._draft = draft
        self._new: dict[RelativePath, PathEntry | None] = {}

    def changes(self) -> tuple[PathChange, ...]:
        return tuple(
            PathChange(path, self._draft.get(path), after)
            for path, after in sorted(self._new.items())
            if self._draft.get(path) != after
        )

    def take(self, step: BatchStep) -> None:
        match step:
            case Create(path, entry):
                _require(entry.kind is not EntryKind.SPECIAL, "only files, links and directories")
                self._make_room(path)
                self._new[path] = entry
            case Update(path, content, size, expected):
                found = self._found(path)
                _require(found.kind is EntryKind.FILE, "it is no file")
                _require(expected in (None, found.content), "it is not as expected")
                self._new[path] = replace(found, content=content, size=size)
            case DeletePath(path):
                self._found(path)
                _require(not self._below(path), "the directory is not empty")
                self._new[path] = None
            case Rename(path, target):
                self._rename(path, target)
            case Chmod(path, mode):
                found = self._found(path)
                _require(found.kind is not EntryKind.LINK, "a link has no mode")
                _require(0 <= mode <= _MODE_MAX, "there is no such mode")
                self._new[path] = replace(found, mode=mode)

    def _rename(self, path: RelativePath, target: RelativePath) -> None:
        found = self._found(path)
        _require(not target.within(path), "it cannot be moved into itself")
        self._make_room(target)
        moved = {path: found, **self._below(path)}
        _require(
            all(entry.kind is not EntryKind.SPECIAL for entry in moved.values()),
            "there is something in it that cannot be kept",
        )
        self._new |= dict.fromkeys(moved)
        for one, entry in moved.items():
            self._new[RelativePath(target.parts + one.parts[len(path.parts) :])] = entry

    def _get(self, path: RelativePath) -> PathEntry | None:
        return self._new[path] if path in self._new else self._draft.get(path)

    def _found(self, path: RelativePath) -> PathEntry:
        found = self._get(path)
        if found is None:
            raise _UnfitError("nothing is there")
        _require(found.kind is not EntryKind.SPECIAL, "it is no file, link or directory")
        return found

    def _make_room(self, path: RelativePath) -> None:
        _require(self._get(path) is None, "something is there already")
        missing: list[RelativePath] = []
        parent = path.parent
        while parent is not None and self._get(parent) is None:
            missing.append(parent)
            parent = parent.parent
        above = self._get(parent) if parent is not None else None
        _require(above is None or above.is_directory, f"{parent} is no directory")
        self._new |= dict.fromkeys(missing, _NEW_DIRECTORY)

    def _below(self, path: RelativePath) -> dict[RelativePath, PathEntry]:
        found = self._get(path)
        if found is None or not found.is_directory:
            return {}
        known = {*self._draft, *self._new}
        return {
            one: entry
            for one in known
            if one != path and one.within(path) and (entry := self._get(one)) is not None
        }


def _require(holds: bool, complaint: str) -> None:
    if not holds:
        raise _UnfitError(complaint)
