"""Decide for each path what a publication does, given the base, the project and the draft.

*Theirs* is the project as it is now, *ours* the draft, *base* the project as the draft began.
Nothing is ever merged straight into the project: a merge goes into the draft, to be reviewed.

One word for all that a draft changes: two drafts with the same seal publish the same.

When a file was written does not matter, and neither does what the person changes in the project
where the draft changed nothing: the seal speaks of the draft's own changes alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct

from blake3 import blake3

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import FileReadFailed, PublishedChanged
from holdfast.workbench.model import EntryKind, PathChange, PathEntry

Tree = Mapping[RelativePath, PathEntry]
Decisions = Mapping[RelativePath, "PathDecision"]
_REPOSITORY = RelativePath.of(".git")


class PathVerdict(StrEnum):
    """What becomes of one path."""

    NOTHING = "nothing"  # both are the same already
    KEEP_THEIRS = "keep_theirs"  # the draft did not change it
    APPLY = "apply"  # only the draft changed it
    MERGE = "merge"  # both did: their lines may go together, in the draft
    CONFLICT = "conflict"  # both did, and nobody can decide but the person
    WITHHELD = "withheld"  # the draft changed it, but it is not published unless asked


class ConflictReason(StrEnum):
    """Why a path is a conflict."""

    BOTH_CHANGED = "both_changed"
    BOTH_CREATED = "both_created"
    DELETED_THERE = "deleted_there"  # they deleted what we changed
    DELETED_HERE = "deleted_here"  # we delete what they changed
    IN_THE_WAY = "in_the_way"  # below it, or above it, is something of theirs
    NOT_COVERED = "not_covered"  # it cannot be kept, so it must not be replaced


@dataclass(frozen=True, slots=True)
class PathDecision:
    """The verdict on one path, and why it is one that stops a publication."""

    verdict: PathVerdict
    reason: ConflictReason | None = None


def decide(
    base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None
) -> PathDecision:
    """The verdict on one path, by what is there in each of the three."""
    if theirs == ours:
        return PathDecision(PathVerdict.NOTHING)
    if ours == base:
        return PathDecision(PathVerdict.KEEP_THEIRS)
    if _is_special(theirs) or _is_special(ours):
        return PathDecision(PathVerdict.CONFLICT, ConflictReason.NOT_COVERED)
    if theirs == base:
        return PathDecision(PathVerdict.APPLY)
    if _is_mergeable(base, theirs, ours):
        return PathDecision(PathVerdict.MERGE)
    return PathDecision(PathVerdict.CONFLICT, _reason(base, theirs, ours))


def decide_all(
    base: Tree,
    theirs: Tree,
    ours: Tree,
    *,
    uncovered: Collection[RelativePath] = (),
    publishes_repository: bool = False,
    withheld: AbstractSet[RelativePath] = frozenset(),
) -> Decisions:
    """The verdict on every path that differs anywhere, so that what comes out is a tree.

    `withheld` are paths that are not published. It costs what the trees hold, so they need hold no
    more than what differs and what is above it.
    """
    paths = sorted({*base, *theirs, *ours})
    every = ((path, base.get(path), theirs.get(path), ours.get(path)) for path in paths)
    decisions = {path: decide(*three) for path, *three in every if not _are_same(*three)}
    decisions |= {
        path: PathDecision(PathVerdict.WITHHELD)
        for path, decision in decisions.items()
        if decision.verdict in _CHANGING
        and (path in withheld or (not publishes_repository and is_own_repository(path)))
    }
    return _placed(decisions, theirs, ours, uncovered)


def forced(
    decisions: Decisions,
    paths: Iterable[RelativePath],
    theirs: Tree,
    ours: Tree,
    *,
    uncovered: Collection[RelativePath] = (),
) -> Decisions:
    """The same with these conflicts and merges decided for the draft; what is uncovered stays.

    A forced file brings the directories that it needs, if they are only gone.
    """
    force = {
        path
        for path in paths
        if path in decisions
        and decisions[path].verdict in {PathVerdict.MERGE, PathVerdict.CONFLICT}
        and decisions[path].reason is not ConflictReason.NOT_COVERED
    }
    gone = {
        above
        for path in force
        if path in ours
        for above in above_of(path)
        if above in decisions and above not in theirs and _is_directory(ours.get(above))
    }
    if not force and all(found.verdict is not PathVerdict.CONFLICT for found in decisions.values()):
        return decisions
    now = {**decisions, **dict.fromkeys(force | gone, PathDecision(PathVerdict.APPLY))}
    return _placed(now, theirs, ours, uncovered)


def chosen_of(
    decisions: Decisions, ours: Tree, only: AbstractSet[RelativePath] | None
) -> Decisions:
    """The verdicts on what was chosen, with all below it, and on the directories it needs."""
    if only is None:
        return decisions
    chosen = {path for path in decisions if is_chosen(path, only)}
    needed = {above for path in chosen if path in ours for above in above_of(path)}
    return {path: found for path, found in decisions.items() if path in chosen | needed}


def require_agreement(decisions: Decisions) -> None:
    """Refuse a publication that somebody must decide about first, naming every such path."""
    stops = {
        path: found
        for path, found in decisions.items()
        if found.verdict in {PathVerdict.MERGE, PathVerdict.CONFLICT}
    }
    lost = [path for path, found in stops.items() if found.reason is ConflictReason.NOT_COVERED]
    if lost:
        raise FileReadFailed(paths=tuple(map(str, sorted(lost))))
    if stops:
        raise PublishedChanged(paths=tuple(map(str, sorted(stops))))


def changes_of(decisions: Decisions, theirs: Tree, ours: Tree) -> tuple[PathChange, ...]:
    """What is applied."""
    applied = [path for path, found in decisions.items() if found.verdict is PathVerdict.APPLY]
    return tuple(PathChange(path, theirs.get(path), ours.get(path)) for path in sorted(applied))


def is_chosen(path: RelativePath, only: AbstractSet[RelativePath] | None) -> bool:
    """Whether a path is one of those that were chosen, or below one; without any, all are."""
    return only is None or path in only or any(above in only for above in above_of(path))


def is_own_repository(path: RelativePath) -> bool:
    """Whether a path is in the project's own `.git`, which is left alone unless asked for."""
    return path.within(_REPOSITORY)


def above_of(path: RelativePath) -> Iterator[RelativePath]:
    """The directories that a path is in, from the nearest on."""
    while (parent := path.parent) is not None:
        yield parent
        path = parent


_CHANGING = {PathVerdict.APPLY, PathVerdict.MERGE, PathVerdict.CONFLICT}


def _is_mergeable(base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None) -> bool:
    """Whether one file was changed on both sides, and only one side changed its mode."""
    if not base or not theirs or not ours:
        return False
    if {base.kind, theirs.kind, ours.kind} != {EntryKind.FILE}:
        return False
    modes = base.mode in (theirs.mode, ours.mode) or theirs.mode == ours.mode
    return modes and (base.xattrs in (theirs.xattrs, ours.xattrs) or theirs.xattrs == ours.xattrs)


def merged_entry(
    base: PathEntry, theirs: PathEntry, ours: PathEntry, content: bytes, size: int
) -> PathEntry:
    """What a merge of two files looks like: the merged bytes, and whichever mode is new."""
    mode = theirs.mode if ours.mode == base.mode else ours.mode
    xattrs = theirs.xattrs if ours.xattrs == base.xattrs else ours.xattrs
    mtime_ns = max(theirs.mtime_ns, ours.mtime_ns)
    return PathEntry(
        EntryKind.FILE, mode, content=content, xattrs=xattrs, size=size, mtime_ns=mtime_ns
    )


def _reason(
    base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None
) -> ConflictReason:
    if base is None:
        return ConflictReason.BOTH_CREATED
    if theirs is None:
        return ConflictReason.DELETED_THERE
    return ConflictReason.DELETED_HERE if ours is None else ConflictReason.BOTH_CHANGED


def _placed(
    decisions: Decisions, theirs: Tree, ours: Tree, uncovered: Collection[RelativePath]
) -> Decisions:
    """The same without what would stand below no directory, or above something that stays."""
    applied = {path for path, found in decisions.items() if found.verdict is PathVerdict.APPLY}
    out = _holding_uncovered(applied, ours, uncovered)
    # A directory that cannot be made takes along what is below it, so this is repeated.
    while refused := _misplaced(applied - out.keys(), theirs, ours):
        out |= dict.fromkeys(refused, PathDecision(PathVerdict.CONFLICT, ConflictReason.IN_THE_WAY))
    return {**decisions, **out}


def _holding_uncovered(
    applied: AbstractSet[RelativePath], ours: Tree, uncovered: Collection[RelativePath]
) -> dict[RelativePath, PathDecision]:
    """What would remove or replace something that is not covered."""
    lost = frozenset(uncovered)
    holding = lost | {above for path in lost for above in above_of(path)}
    return {
        path: PathDecision(PathVerdict.CONFLICT, ConflictReason.NOT_COVERED)
        for path in applied
        if (path in holding and not _is_directory(ours.get(path)))
        or (lost and is_chosen(path, lost))
    }


def _misplaced(applied: AbstractSet[RelativePath], theirs: Tree, ours: Tree) -> set[RelativePath]:
    """What, if all of it were applied, would have no directory above it, or something below it."""
    result = {**theirs, **{path: ours[path] for path in applied if path in ours}}
    for path in applied - ours.keys():
        result.pop(path, None)
    homes = {path.parts[:-1] for path in result}
    directories = {path.parts for path, entry in result.items() if entry.is_directory}
    return {
        path
        for path in applied
        if (len(path.parts) > 1 and path.parts[:-1] not in directories and path in result)
        or (path.parts in homes and path.parts not in directories)
    }


def _are_same(base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None) -> bool:
    return base == theirs == ours


def _is_special(entry: PathEntry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.SPECIAL


def _is_directory(entry: PathEntry | None) -> bool:
    return entry is not None and entry.is_directory


_CONTEXT = "holdfast workbench 2026 seal of a draft"
_LENGTH = Struct("<Q")
_NOTHING = b"-"


def seal_of(changes: Iterable[PathChange]) -> str:
    """The seal of these changes, whatever their order."""
    hashed = blake3(derive_key_context=_CONTEXT)
    for change in sorted(changes, key=lambda change: change.path):
        for part in (change.path.raw, *_parts(change.before), *_parts(change.after)):
            hashed.update(_LENGTH.pack(len(part)) + part)
    return hashed.hexdigest()


def _parts(entry: PathEntry | None) -> Iterator[bytes]:
    """What an entry is told apart by, in an order that nothing else has."""
    if entry is None:
        yield _NOTHING
        return
    yield entry.kind.encode()
    yield b"%o" % entry.mode
    yield entry.content
    yield entry.target
    yield b"%d" % len(entry.xattrs)
    for name, value in entry.xattrs:
        yield name
        yield value
