"""Three-way decision for each path of a publish, and the seal of a draft. Pure.

*base* is the project when the draft began, *theirs* the project now, *ours* the draft. Merges never
write to the project: they go into the draft, to be reviewed there.

The seal is a hash over the draft's own changes: drafts with equal seals publish the same.
Timestamps, and changes of the project at paths that the draft did not touch, do not affect it.
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
    """What a publish does with one path."""

    NOTHING = "nothing"  # both are the same already
    KEEP_THEIRS = "keep_theirs"  # the draft did not change it
    APPLY = "apply"  # only the draft changed it
    MERGE = "merge"  # both did: their lines may go together, in the draft
    CONFLICT = "conflict"  # both did; a person must decide
    WITHHELD = "withheld"  # the draft changed it, but it is not published unless asked


class ConflictReason(StrEnum):
    """Why a path is in conflict."""

    BOTH_CHANGED = "both_changed"
    BOTH_CREATED = "both_created"
    DELETED_THERE = "deleted_there"  # they deleted what we changed
    DELETED_HERE = "deleted_here"  # we delete what they changed
    IN_THE_WAY = "in_the_way"  # below it, or above it, is something of theirs
    NOT_COVERED = "not_covered"  # it cannot be kept, so it must not be replaced


@dataclass(frozen=True, slots=True)
class PathDecision:
    """Verdict on one path, with the reason of a conflict."""

    verdict: PathVerdict
    reason: ConflictReason | None = None


def decide(
    base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None
) -> PathDecision:
    """Decide one path from its three entries."""
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
    """Decide every path that differs, so that the result is a valid tree.

    `withheld` paths are not published. Costs the size of the trees, which need only hold differing
    paths and the directories above them.
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
    """Resolve these conflicts and merges in favour of the draft; uncovered paths stay conflicts.

    Missing directories above a forced file are created.
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
    """Restrict decisions to the chosen paths, those below them, and directories they need."""
    if only is None:
        return decisions
    chosen = {path for path in decisions if is_chosen(path, only)}
    needed = {above for path in chosen if path in ours for above in above_of(path)}
    return {path: found for path, found in decisions.items() if path in chosen | needed}


def require_agreement(decisions: Decisions) -> None:
    """Raise FileReadFailed or PublishedChanged with all paths in conflict, if there are any."""
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
    """Return the changes of all APPLY decisions, sorted."""
    applied = [path for path, found in decisions.items() if found.verdict is PathVerdict.APPLY]
    return tuple(PathChange(path, theirs.get(path), ours.get(path)) for path in sorted(applied))


def is_chosen(path: RelativePath, only: AbstractSet[RelativePath] | None) -> bool:
    """Whether a path is one of `only` or below one; None selects all paths."""
    return only is None or path in only or any(above in only for above in above_of(path))


def is_own_repository(path: RelativePath) -> bool:
    """Whether a path is in the project's own `.git`, which is published only on request."""
    return path.within(_REPOSITORY)


def above_of(path: RelativePath) -> Iterator[RelativePath]:
    """Yield the ancestors of a path, nearest first."""
    while (parent := path.parent) is not None:
        yield parent
        path = parent


_CHANGING = {PathVerdict.APPLY, PathVerdict.MERGE, PathVerdict.CONFLICT}


def _is_mergeable(base: PathEntry | None, theirs: PathEntry | None, ours: PathEntry | None) -> bool:
    """Whether both sides changed one file, and at most one side its mode and attributes."""
    if not base or not theirs or not ours:
        return False
    if {base.kind, theirs.kind, ours.kind} != {EntryKind.FILE}:
        return False
    modes = base.mode in (theirs.mode, ours.mode) or theirs.mode == ours.mode
    return modes and (base.xattrs in (theirs.xattrs, ours.xattrs) or theirs.xattrs == ours.xattrs)


def merged_entry(
    base: PathEntry, theirs: PathEntry, ours: PathEntry, content: bytes, size: int
) -> PathEntry:
    """Return the entry of a merged file: merged content, and the mode that changed."""
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
    """Turn APPLY decisions into conflicts where the result would not be a valid tree."""
    applied = {path for path, found in decisions.items() if found.verdict is PathVerdict.APPLY}
    out = _holding_uncovered(applied, ours, uncovered)
    # A directory that cannot be made takes along what is below it, so this is repeated.
    while refused := _misplaced(applied - out.keys(), theirs, ours):
        out |= dict.fromkeys(refused, PathDecision(PathVerdict.CONFLICT, ConflictReason.IN_THE_WAY))
    return {**decisions, **out}


def _holding_uncovered(
    applied: AbstractSet[RelativePath], ours: Tree, uncovered: Collection[RelativePath]
) -> dict[RelativePath, PathDecision]:
    """Return conflicts for paths whose change would remove or replace an uncovered path."""
    lost = frozenset(uncovered)
    holding = lost | {above for path in lost for above in above_of(path)}
    return {
        path: PathDecision(PathVerdict.CONFLICT, ConflictReason.NOT_COVERED)
        for path in applied
        if (path in holding and not _is_directory(ours.get(path)))
        or (lost and is_chosen(path, lost))
    }


def _misplaced(applied: AbstractSet[RelativePath], theirs: Tree, ours: Tree) -> set[RelativePath]:
    """Return applied paths that would lack a parent directory, or cover other paths."""
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
    """Return the seal of changes, in any order."""
    hashed = blake3(derive_key_context=_CONTEXT)
    for change in sorted(changes, key=lambda change: change.path):
        for part in (change.path.raw, *_parts(change.before), *_parts(change.after)):
            hashed.update(_LENGTH.pack(len(part)) + part)
    return hashed.hexdigest()


def _parts(entry: PathEntry | None) -> Iterator[bytes]:
    """Yield the compared fields of an entry; the seal prefixes each with its length."""
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
