"""Carry a transaction out, or undo it, one act at a time: publish, restore and batches.

    look, stage ──▶ prepared ──every operation──▶ committed ──▶ rescue, tell, clean up
                       │                                              ▲
                       └── conflict, failure or kill ──▶ undone ──────┘

The marker on disk knows these three states and nothing of how far one came. Nothing here touches
a disk: `publish` and `recover` yield what must be done and are sent what came of it. Whoever
carries the acts out may be killed before and after each of them, and runs `recover` next time.
An act that fails ends the run: close it, read the marker again, and run `recover`.

Decide how one operation is undone, from nothing but what is found.

The person may save, delete or create at any moment, also while we undo. So nobody relies on what
they did a moment ago: whoever undoes looks, takes one atomic step, and looks again, until there
is nothing to do. Killed in between, the next one begins by looking, too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as dataclasses_replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathChange, PathEntry

# Lay out what a transaction does to the project: which operations, in which order.

_ENTERABLE = 0o300  # what its owner needs to make and remove names in a directory
_OPEN = 0o700
_PERMISSIONS = 0o777

ACCESS = b"system.posix_acl_access"  # to set it is to set the permissions, in one step


class Verb(StrEnum):
    """One atomic thing that is done to one path."""

    SWAP = "swap"  # the staged entry and the one at the path change places
    PUT = "put"  # the staged entry goes where nothing is
    TAKE = "take"  # the entry at the path goes into the stage
    REMOVE_DIRECTORY = "remove_directory"  # only if it is empty: the system sees to that
    ADJUST = "adjust"  # a directory stays, and its mode or attributes change


class PathOperation(Struct, frozen=True, gc=False):
    """One step of a transaction, with all that undoing it needs to know.

    Each has a slot of its own in the stage. What is in it, and what is at the path, tell at any
    time whether the operation was carried out: nobody has to write down how far they came.
    """

    verb: Verb
    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None
    slot: int

    @property
    def stages(self) -> bool:
        """Whether its slot must hold the new entry before anything begins."""
        return self.verb is Verb.SWAP or self.verb is Verb.PUT


def plan_operations(
    changes: Iterable[PathChange], *, can_exchange: bool = True
) -> tuple[PathOperation, ...]:
    """The operations that make these changes, so ordered that each finds what it needs.

    Without an exchange of names in one step, a changed file is taken away and the new one put in
    its place: for a moment there is none, but whatever a person saved just then is never lost.
    """
    changes = sorted(changes, key=lambda change: change.path)
    assert len({change.path for change in changes}) == len(changes), "one change for each path"
    steps = [step for change in changes for step in _steps(change, can_exchange)]
    return tuple(
        PathOperation(step.verb, step.path, step.before, step.after, slot)
        for slot, step in enumerate(_ordered(steps))
    )


def _steps(change: PathChange, can_exchange: bool) -> Iterator[PathOperation]:
    before, after = change.before, change.after
    specials = [one for one in (before, after) if one and one.kind is EntryKind.SPECIAL]
    assert not specials, f"{change.path} is nothing that can be stored"
    if before and after and before.is_directory and after.is_directory:
        yield from _adjustments(change.path, before, after)
        return
    plain = before and after and not before.is_directory and not after.is_directory
    if plain and can_exchange:
        yield PathOperation(Verb.SWAP, change.path, before, after, 0)
        return
    if before and before.is_directory:
        emptied = _open(before) if before.mode & _ENTERABLE != _ENTERABLE else before
        yield from _adjustments(change.path, before, emptied)
        yield PathOperation(Verb.REMOVE_DIRECTORY, change.path, emptied, None, 0)
    elif before:
        yield PathOperation(Verb.TAKE, change.path, before, None, 0)
    if after:
        made = _open(after) if after.is_directory else after
        yield PathOperation(Verb.PUT, change.path, None, made, 0)
        yield from _adjustments(change.path, made, after)


def _open(directory: PathEntry) -> PathEntry:
    """As it is while something is put into it or taken out of it."""
    return replace(directory, mode=directory.mode | _OPEN)


def _adjustments(
    path: RelativePath, before: PathEntry, after: PathEntry
) -> Iterator[PathOperation]:
    """One step for all that one system call changes: a kill leaves none of them half done.

    A mode that opens the directory comes first, any other last: it may rule out the rest.
    """
    have, opened = before, replace(before, mode=after.mode)
    first = PathOperation(Verb.ADJUST, path, before, opened, 0)
    if _opens(first):
        yield first
        have = opened
    old, new = dict(have.xattrs), dict(after.xattrs)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) == new.get(name):
            continue
        attributes = {**dict(have.xattrs), name: new.get(name)}
        kept = ((each, value) for each, value in attributes.items() if value is not None)
        want = replace(have, xattrs=tuple(sorted(kept)))
        if name == ACCESS and name in new:  # it contains the permissions
            want = replace(want, mode=have.mode & ~_PERMISSIONS | after.mode & _PERMISSIONS)
        yield PathOperation(Verb.ADJUST, path, have, want, 0)
        have = want
    if have != after:
        yield PathOperation(Verb.ADJUST, path, have, after, 0)


def _ordered(steps: list[PathOperation]) -> list[PathOperation]:
    """What opens directories, then what removes, from below; then what puts, from above.

    The adjustments of one directory stay in their order.
    """
    first = [step for step in steps if step.verb is Verb.ADJUST and _opens(step)]
    last = [step for step in steps if step.verb is Verb.ADJUST and not _opens(step)]
    of = {verb: [step for step in steps if step.verb is verb] for verb in Verb}
    return [
        *first,
        *of[Verb.SWAP],
        *of[Verb.TAKE],
        *reversed(of[Verb.REMOVE_DIRECTORY]),
        *of[Verb.PUT],
        *sorted(last, key=lambda step: step.path, reverse=True),  # which keeps the rest in order
    ]


def _opens(step: PathOperation) -> bool:
    """Whether names can be made in a directory after it, and could not before."""
    assert step.before and step.after
    opened = step.after.mode & _ENTERABLE == _ENTERABLE
    return opened and step.before.mode & _ENTERABLE != _ENTERABLE


class PathAction(StrEnum):
    """One atomic step at a path of the project; it is refused when the world is not as thought."""

    EXCHANGE = "exchange"  # path and slot change places; both must be there
    PUT = "put"  # from the slot to the path, where nothing may be
    TAKE = "take"  # from the path into the slot, where nothing may be
    REMOVE_DIRECTORY = "remove_directory"  # at the path, if it is empty
    REMAKE_DIRECTORY = "remake_directory"  # as it was before, where nothing may be
    ADJUST = "adjust"  # mode and attributes of a directory become those after
    READJUST = "readjust"  # mode and attributes of a directory become those before


@dataclass(frozen=True, slots=True)
class Observation:
    """What is found for one operation."""

    at_path: PathEntry | None
    in_slot: PathEntry | None


def next_undo_action(operation: PathOperation, observed: Observation) -> PathAction | None:
    """The step that brings the path closer to how it was; None when it is, or is theirs."""
    match operation.verb:
        case Verb.SWAP:
            return _unswap(operation, observed)
        case Verb.PUT:
            return _unput(operation, observed)
        case Verb.TAKE:
            is_away = observed.in_slot is not None and observed.at_path is None
            return PathAction.PUT if is_away else None
        case Verb.REMOVE_DIRECTORY:
            return PathAction.REMAKE_DIRECTORY if observed.at_path is None else None
        case Verb.ADJUST:
            return PathAction.READJUST if observed.at_path == operation.after else None


def is_foreign(operation: PathOperation, in_slot: PathEntry | None) -> bool:
    """Whether what is in the slot is something of the person's that may be nowhere else."""
    if operation.verb is Verb.REMOVE_DIRECTORY:
        return False  # at most a directory that somebody was about to make again
    return in_slot not in (None, operation.before, operation.after)


def _unswap(operation: PathOperation, observed: Observation) -> PathAction | None:
    if observed.in_slot is None or observed.at_path is None or observed.in_slot == operation.after:
        return None  # not begun or undone already; or they deleted the file, which is their right
    if observed.in_slot == operation.before:
        return PathAction.EXCHANGE if observed.at_path == operation.after else None
    # Theirs came out: they had saved just before. Whatever of ours is in its place goes; if they
    # saved once more, the later one stays.
    is_newer = (
        observed.in_slot.mtime_ns > observed.at_path.mtime_ns and not observed.at_path.is_directory
    )
    goes_back = is_newer or observed.at_path in (operation.before, operation.after)
    return PathAction.EXCHANGE if goes_back else None


def _unput(operation: PathOperation, observed: Observation) -> PathAction | None:
    assert operation.after is not None
    if observed.at_path == operation.after and observed.in_slot is None:
        # A directory is not moved away: what a person puts into it would go along.
        return PathAction.REMOVE_DIRECTORY if operation.after.is_directory else PathAction.TAKE
    if observed.at_path == operation.after == observed.in_slot:
        return (
            PathAction.TAKE
        )  # if it is one file of two names, who put it there was killed halfway
    theirs_came_out = is_foreign(operation, observed.in_slot) and observed.at_path is None
    return PathAction.PUT if theirs_came_out else None


_STEPS_MAX: Final = 16  # each needs a person who saves between two system calls


class TransactionState(StrEnum):
    """How far the transaction of a marker has come."""

    PREPARED = "prepared"  # all is staged; some operations may have been carried out
    COMMITTED = "committed"  # all of them were: only tidying is left
    UNDONE = "undone"  # none of them is in effect: only tidying is left


Facts = Mapping[str, object]
"""What is written down of a deed, in values that JSON has."""

_NONE: Final[Facts] = MappingProxyType({})


class Purpose(NamedTuple):
    """By what a transaction is known, and what whoever ends it must know of it."""

    key: str
    facts: Facts = _NONE


@dataclass(frozen=True, slots=True)
class Marker:
    """What is on disk while there is a transaction to reconcile."""

    key: str
    state: TransactionState
    operations: tuple[PathOperation, ...]
    facts: Facts = field(default_factory=dict[str, object])


class TransactionResult(StrEnum):
    """Which way a transaction went."""

    NOTHING = "nothing"  # there was none
    FINISHED = "finished"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class TransactionOutcome:
    """How a transaction ended, and what of the person's was met on the way."""

    result: TransactionResult
    key: str = ""  # whose it was
    conflicts: tuple[RelativePath, ...] = ()  # why it was undone, if that is why
    theirs: tuple[RelativePath, ...] = ()  # not undone: somebody else changed it, and it stays so
    rescued: tuple[
        RelativePath, ...
    ] = ()  # where something of theirs came out that is in the store
    is_tidy: bool = True  # else the next one to open the project tells and cleans up
    facts: Facts = field(default_factory=dict[str, object])  # what it was for, if it is told


class MakeStage(Struct, frozen=True, gc=False):
    """Make a stage in which there is nothing, also if there is one of somebody who died."""


class StageEntry(Struct, frozen=True, gc=False):
    """Write the new entry of an operation into its slot; it need not be durable yet."""

    operation: PathOperation


class QuickCheckPath(Struct, frozen=True, gc=False):
    """Say what is at the path of an operation; a file whose size, mode and time fit is as expected.

    Only before anything has begun: what comes out of the path is looked at by its content.
    """

    operation: PathOperation


class InspectPath(Struct, frozen=True, gc=False):
    """Say what is at the path of an operation, by content; answered with that, or None."""

    operation: PathOperation


class InspectSlot(Struct, frozen=True, gc=False):
    """Say what is in the slot of an operation, by content; answered with that, or None."""

    operation: PathOperation


class Apply(Struct, frozen=True, gc=False):
    """Take one atomic step; answered with whether it was possible."""

    action: PathAction
    operation: PathOperation


class SyncAll(Struct, frozen=True, gc=False):
    """Make durable whatever was done before, files and names alike."""


class WriteMarker(Struct, frozen=True, gc=False):
    """Replace the marker, durably and in one step; without a state, remove it."""

    state: TransactionState | None


class Rescue(Struct, frozen=True, gc=False):
    """Keep what is in the slot of an operation in the store, durably."""

    operation: PathOperation


class ReportOutcome(Struct, frozen=True, gc=False):
    """Write the outcome down, durably; after a kill it may be asked again."""

    outcome: TransactionOutcome


class DropStage(Struct, frozen=True, gc=False):
    """Remove the stage and all that is in it, if it is there."""


Inspect = QuickCheckPath | InspectPath | InspectSlot
Step = (
    MakeStage
    | StageEntry
    | Inspect
    | Apply
    | SyncAll
    | WriteMarker
    | Rescue
    | ReportOutcome
    | DropStage
)
StepResult = PathEntry | bool | None
StepGenerator = Generator[Step, StepResult, TransactionOutcome]


def publish(operations: tuple[PathOperation, ...], key: str) -> StepGenerator:
    """Bring all operations into effect, or none: if the project is not as expected, undo all."""
    conflicts = yield from _unexpected(operations, QuickCheckPath)
    if conflicts:
        return TransactionOutcome(TransactionResult.UNDONE, key, conflicts)
    yield MakeStage()
    for operation in operations:
        if operation.stages:
            yield StageEntry(operation)
    yield SyncAll()
    yield WriteMarker(TransactionState.PREPARED)
    for operation in operations:
        if not (yield from _execute(operation)):
            yield from _undo(operations)
            undone = Marker(key, TransactionState.UNDONE, operations)
            return (yield from _settle(undone, (operation.path,)))
    yield SyncAll()
    yield WriteMarker(TransactionState.COMMITTED)
    return (yield from _settle(Marker(key, TransactionState.COMMITTED, operations)))


def recover(marker: Marker | None) -> StepGenerator:
    """Finish or undo what somebody else began; safe to be killed, and to be run again."""
    if marker is None:
        yield DropStage()
        return TransactionOutcome(TransactionResult.NOTHING)
    if marker.state is TransactionState.PREPARED:
        yield from _undo(marker.operations)
        return (yield from _settle(dataclasses_replace(marker, state=TransactionState.UNDONE)))
    # Who wrote it may have died before it was durable, and all that is tidied away relies on it.
    yield WriteMarker(marker.state)
    return (yield from _settle(marker))


def _unexpected(
    operations: tuple[PathOperation, ...], look: type[QuickCheckPath | InspectPath]
) -> Generator[Step, StepResult, tuple[RelativePath, ...]]:
    """The paths that are not as they were; most conflicts are seen so before anything begins."""
    first: dict[RelativePath, PathOperation] = {}
    for operation in operations:
        first.setdefault(operation.path, operation)
    found: list[RelativePath] = []
    for operation in first.values():
        at_path = yield look(operation)
        if at_path != operation.before:
            found.append(operation.path)
    return tuple(sorted(found))


def _execute(operation: PathOperation) -> Generator[Step, StepResult, bool]:
    """Do it, then look at what came out: only that tells whether somebody was faster."""
    if operation.verb is Verb.ADJUST:
        is_expected = (yield InspectPath(operation)) == operation.before
        return is_expected and (yield Apply(PathAction.ADJUST, operation)) is True
    if (yield Apply(_FORWARD[operation.verb], operation)) is not True:
        return False
    if operation.verb not in _FILLED:
        return True  # there was nothing that could have come out
    return (yield InspectSlot(operation)) == operation.before


_FORWARD: Final = {
    Verb.SWAP: PathAction.EXCHANGE,
    Verb.PUT: PathAction.PUT,
    Verb.TAKE: PathAction.TAKE,
    Verb.REMOVE_DIRECTORY: PathAction.REMOVE_DIRECTORY,
}


def _undo(operations: tuple[PathOperation, ...]) -> Generator[Step, StepResult, None]:
    for operation in reversed(operations):
        yield from _undo_one(operation)
    yield SyncAll()
    yield WriteMarker(TransactionState.UNDONE)


def _undo_one(operation: PathOperation) -> Generator[Step, StepResult, None]:
    before: Observation | None = None
    for _ in range(_STEPS_MAX):
        at_path = _entry((yield InspectPath(operation)))
        observed = Observation(at_path, _entry((yield InspectSlot(operation))))
        action = next_undo_action(operation, observed)
        if action is None or observed == before:
            return  # or it cannot be done: something of theirs is in the way, and stays
        before = None if (yield Apply(action, operation)) is True else observed


def _settle(marker: Marker, conflicts: tuple[RelativePath, ...] = ()) -> StepGenerator:
    """Keep what is only in the stage, tell, and tidy up; the transaction is over already."""
    is_committed = marker.state is TransactionState.COMMITTED
    rescued: set[RelativePath] = set()
    for operation in marker.operations:
        if operation.verb in (_FILLED if is_committed else _USED):
            in_slot = _entry((yield InspectSlot(operation)))
            if is_foreign(operation, in_slot):
                yield Rescue(operation)
                rescued.add(operation.path)
    outcome = TransactionOutcome(
        TransactionResult.FINISHED, marker.key, rescued=tuple(sorted(rescued))
    )
    if not is_committed:
        theirs = yield from _unexpected(marker.operations, InspectPath)
        outcome = dataclasses_replace(
            outcome, result=TransactionResult.UNDONE, conflicts=conflicts, theirs=theirs
        )
    yield ReportOutcome(outcome)
    yield DropStage()
    yield WriteMarker(None)
    return outcome


_FILLED: Final = {Verb.SWAP, Verb.TAKE}  # what fills its slot with what was at the path
_USED: Final = {*_FILLED, Verb.PUT}


def _entry(answer: StepResult) -> PathEntry | None:
    assert not isinstance(answer, bool)
    return answer
