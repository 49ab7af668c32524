"""What the workbench speaks of: what stands at a path, and what is to become of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from holdfast.nouns import Id, RelativePath

CONTENT_ID_BYTES = 32
STAGE_PREFIX = ".holdfast-stage-"  # of a directory of ours in the project, never kept or published


class WorkProgress(NamedTuple):
    """How far something long has come; `of` is how far it goes, if anybody knows."""

    what: str
    done: int
    of: int | None = None


ProgressCallback = Callable[[WorkProgress], None]
"""Is told how far something has come; it must be quick and must not raise."""


def ignore_progress(_: WorkProgress) -> None:
    """Tell nobody."""


class EntryKind(StrEnum):
    """What a path leads to."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"  # a fifo, a socket, a device: recorded, never stored


class PathEntry(Struct, frozen=True, eq=False, gc=False):
    """What stands at one path; two are equal when nobody could tell them apart by reading."""

    kind: EntryKind
    mode: int
    content: bytes = b""  # the id of a file's bytes; nothing for all else
    target: bytes = b""  # where a link leads, as it is spelled
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    size: int = 0  # these two make no difference
    mtime_ns: int = 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PathEntry)
            and self.content == other.content
            and self.mode == other.mode
            and self.kind is other.kind
            and self.target == other.target
            and self.xattrs == other.xattrs
        )

    def __ne__(self, other: object) -> bool:  # else it would be what a Struct takes it for
        return not self == other

    def __hash__(self) -> int:
        return hash((self.kind, self.mode, self.content, self.target, self.xattrs))

    @property
    def is_directory(self) -> bool:
        """Whether other paths can be below it."""
        return self.kind is EntryKind.DIRECTORY


class PathChange(Struct, frozen=True, gc=False):
    """What is to become of one path: what must stand there before, and what does after."""

    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None

    def __post_init__(self) -> None:
        assert self.before != self.after, f"nothing changes at {self.path}"


def change_kind(before: PathEntry | None, after: PathEntry | None) -> str:
    """What became of one path, in a word: added, deleted, changed, or only its mode."""
    if before is None or after is None:
        return "added" if before is None else "deleted"
    is_same = before.content == after.content and before.target == after.target
    return "mode" if is_same and before.kind is after.kind else "changed"


class ChangeNote(Struct, frozen=True):
    """One thing to know about a change; `is_loud` if it may let somebody else do something.

    It is one line, and may hold names that anybody chose.
    """

    text: str
    is_loud: bool = False


class UncoveredReason(StrEnum):
    """Why a path is not covered by a checkpoint; nothing of ours ever touches such a path."""

    UNREADABLE = "unreadable"  # this user may not read it
    CHANGING = "changing"  # it was written to faster than it could be read
    SPECIAL = "special"  # a fifo, a socket or a device has no content to keep
    MOUNTED = "mounted"  # another file system begins there
    TOO_DEEP = "too_deep"  # no path that the system takes reaches what is below it
    POLICY = "policy"  # the person said to leave it out


@dataclass(frozen=True, slots=True)
class UncoveredPath:
    """One path that a checkpoint does not cover, with all that is below it."""

    path: RelativePath
    reason: UncoveredReason


class Occasion(StrEnum):
    """What a checkpoint was made for."""

    AUTO = "auto"
    MANUAL = "manual"
    PUBLISH = "publish"
    PRE_RESTORE = "pre_restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A whole tree at one moment, kept; `files`, `size` and `uncovered` count what is in it."""

    id: Id
    at_ms: int
    occasion: Occasion
    message: str
    origin: str
    tree: bytes
    files: int
    size: int
    uncovered: int


class TouchedPaths(NamedTuple):
    """Where a draft may differ from what it is a draft of.

    Of `paths` each is looked at by itself, a directory without what is in it; of `whole` every
    directory is looked at with all that is below it, because nothing of the old shows through.
    """

    paths: frozenset[RelativePath] = frozenset()
    whole: frozenset[RelativePath] = frozenset()


class DraftMode(StrEnum):
    """How a draft is kept apart from its project."""

    OVERLAY = "overlay"  # a layer over the project, at its own path
    REFLINK = "reflink"  # a copy that shares what is the same with the project
    COPY = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A state of a draft that one can go back to.

    `base` is the checkpoint of the project that its changes were counted from, then; `back_to` is
    the number of the revision that it went back to, if that is how it came to be.
    """

    number: int
    checkpoint: Id
    at_ms: int
    cause: str
    base: Id | None = None
    back_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A view of a project in which an agent writes.

    `base` is the checkpoint of the project that the draft's changes are counted from; there is none
    until something is let into the draft. `also` are directories outside of the project that the
    draft covers, too. `reason` says why it is not kept apart in a better way, if it is not;
    `left_out` are the paths that a copy does not have, and why.
    """

    id: Id
    project: str
    mode: DraftMode
    at_ms: int
    base: Id | None = None
    revisions: tuple[Revision, ...] = ()
    also: tuple[str, ...] = ()
    reason: str = ""
    left_out: tuple[UncoveredPath, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What became of a commit that was asked for.

    Without an `id` there was nothing to commit; with a `problem` the commit exists and its branch
    does not have it. `parent` is the commit before it, if there is one. `branch` is None on a
    detached HEAD. `left_out` cannot be in a commit of this
    repository; of the files in `whole` changes that were not committed before are in it, too.
    """

    id: str | None
    parent: str | None = None
    branch: str | None = None
    problem: str = ""
    left_out: tuple[RelativePath, ...] = ()
    whole: tuple[RelativePath, ...] = ()
