"""Data types of the workbench."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from holdfast.nouns import Id, RelativePath

CONTENT_ID_BYTES = 32
# Staging directory in the project; never stored or published.
STAGE_PREFIX = ".holdfast-stage-"


class WorkProgress(NamedTuple):
    """Progress of a long operation; `of` is the total, if known."""

    what: str
    done: int
    of: int | None = None


ProgressCallback = Callable[[WorkProgress], None]
"""Called with progress; must be quick and must not raise."""


def ignore_progress(_: WorkProgress) -> None: ...


class EntryKind(StrEnum):
    """Type of a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"  # a fifo, a socket, a device: recorded, never stored


class PathEntry(Struct, frozen=True, eq=False, gc=False):
    """Entry at one path; equality ignores size and mtime, which follow from content and time."""

    kind: EntryKind
    mode: int
    content: bytes = b""  # the id of a file's bytes; nothing for all else
    target: bytes = b""  # where a link leads, as it is spelled
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    size: int = 0  # not compared
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

    def __ne__(self, other: object) -> bool:  # Struct defines its own
        return not self == other

    def __hash__(self) -> int:
        return hash((self.kind, self.mode, self.content, self.target, self.xattrs))

    @property
    def is_directory(self) -> bool:
        return self.kind is EntryKind.DIRECTORY


class PathChange(Struct, frozen=True, gc=False):
    """Change of one path: the expected entry, and the new one."""

    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None

    def __post_init__(self) -> None:
        assert self.before != self.after, f"nothing changes at {self.path}"


def change_kind(before: PathEntry | None, after: PathEntry | None) -> str:
    """Return the kind of a change: added, deleted, changed, or mode."""
    if before is None or after is None:
        return "added" if before is None else "deleted"
    is_same = before.content == after.content and before.target == after.target
    return "mode" if is_same and before.kind is after.kind else "changed"


class ChangeNote(Struct, frozen=True):
    """Note on a change; `is_loud` if the change can run code or grant access.

    One line of untrusted text.
    """

    text: str
    is_loud: bool = False


class UncoveredReason(StrEnum):
    """Why a checkpoint does not cover a path; uncovered paths are never modified."""

    UNREADABLE = "unreadable"  # this user may not read it
    CHANGING = "changing"  # modified during every attempt to read it
    SPECIAL = "special"  # a fifo, a socket or a device has no content to keep
    MOUNTED = "mounted"  # another file system begins there
    TOO_DEEP = "too_deep"  # longer than PATH_MAX or too many levels
    POLICY = "policy"  # excluded by the user


@dataclass(frozen=True, slots=True)
class UncoveredPath:
    """A path that a checkpoint does not cover, with all below it."""

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
    """A stored tree at one moment; `files`, `size` and `uncovered` are totals of the tree."""

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
    """Paths at which a draft may differ from its project.

    Each of `paths` is compared by itself, a directory without its contents; each of `whole` with
    all below it.
    """

    paths: frozenset[RelativePath] = frozenset()
    whole: frozenset[RelativePath] = frozenset()


class DraftMode(StrEnum):
    """How a draft is isolated from its project."""

    OVERLAY = "overlay"  # a layer over the project, at its own path
    REFLINK = "reflink"  # a copy that shares what is the same with the project
    COPY = "copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A restorable state of a draft.

    `base` is the project checkpoint that its changes were relative to; `back_to` is the number of
    the revision that an undo returned to.
    """

    number: int
    checkpoint: Id
    at_ms: int
    cause: str
    base: Id | None = None
    back_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An isolated view of a project for an agent.

    `base` is the project checkpoint that changes are relative to; None until the draft is first
    entered. `also` are directories outside of the project that it covers. `reason` says why a
    better mode was not possible; `left_out` are paths missing from a copy.
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
    """Result of a requested git commit.

    Without an `id` there was nothing to commit; with a `problem` the commit exists but its branch
    was not moved. `parent` is its parent commit. `branch` is None for a detached HEAD. `left_out`
    cannot be committed to this repository; files in `whole` include changes that were uncommitted
    before.
    """

    id: str | None
    parent: str | None = None
    branch: str | None = None
    problem: str = ""
    left_out: tuple[RelativePath, ...] = ()
    whole: tuple[RelativePath, ...] = ()
