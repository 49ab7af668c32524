"""Plan a batch of file changes against a draft: all of it fits, or it is refused. Pure.

Steps build on each other. The result is one change for each path, for a transaction.
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
    """Create an entry; missing parent directories are created."""

    path: RelativePath
    entry: PathEntry


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the content of a file; with `expected`, only if it has that hash."""

    path: RelativePath
    content: bytes
    size: int
    expected: bytes | None = None


@dataclass(frozen=True, slots=True)
class DeletePath:
    """Delete a file or an empty directory."""

    path: RelativePath


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename a file or a directory with its contents, to an unused path."""

    path: RelativePath
    target: RelativePath


@dataclass(frozen=True, slots=True)
class Chmod:
    """Change the mode of a file or directory."""

    path: RelativePath
    mode: int


BatchStep = Create | Update | DeletePath | Rename | Chmod


class BatchRetry(StrEnum):
    """How to continue a batch that was begun before."""

    APPLY = "apply"  # the draft is as it was
    DONE = "done"  # already applied; only the event is missing


class _UnfitError(ValueError):
    """A step does not fit; internal to this module."""


def changes_of(steps: Sequence[BatchStep], draft: Tree) -> tuple[PathChange, ...]:
    """Return the changes of a batch; raises BatchRefused with every reason."""
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
    """Compare a begun batch with the draft; raises BatchStale with the differing paths."""
    changes = tuple(changes)
    if all(draft.get(change.path) == change.before for change in changes):
        return BatchRetry.APPLY
    if all(draft.get(change.path) == change.after for change in changes):
        return BatchRetry.DONE
    moved = [change for change in changes if draft.get(change.path) != change.before]
    raise BatchStale(paths=tuple(str(change.path) for change in moved))


class _Staged:
    """The draft with the steps so far, as differences."""

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
                _require(found.kind is EntryKind.FILE, "it is not a file")
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
                _require(0 <= mode <= _MODE_MAX, "the mode is not valid")
                self._new[path] = replace(found, mode=mode)

    def _rename(self, path: RelativePath, target: RelativePath) -> None:
        found = self._found(path)
        _require(not target.within(path), "it cannot be moved into itself")
        self._make_room(target)
        moved = {path: found, **self._below(path)}
        _require(
            all(entry.kind is not EntryKind.SPECIAL for entry in moved.values()),
            "it contains a path that cannot be stored",
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
        _require(found.kind is not EntryKind.SPECIAL, "it is not a file, link or directory")
        return found

    def _make_room(self, path: RelativePath) -> None:
        _require(self._get(path) is None, "something is there already")
        missing: list[RelativePath] = []
        parent = path.parent
        while parent is not None and self._get(parent) is None:
            missing.append(parent)
            parent = parent.parent
        above = self._get(parent) if parent is not None else None
        _require(above is None or above.is_directory, f"{parent} is not a directory")
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
