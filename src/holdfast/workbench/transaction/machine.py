"""Transaction machine: plan, execute and undo changes of many paths. Pure.

    check, stage ──▶ prepared ──every operation──▶ committed ──▶ rescue, report, clean up
                        │                                              ▲
                        └── conflict, failure or kill ──▶ undone ──────┘

`publish` and `recover` are generators: they yield steps and are sent the result of each. The
executor may be killed before or after any step; `recover` then continues from the marker. A step
that fails ends the generator: close it, read the marker again, and run `recover`.

Invariants:

- The marker on disk holds one of three states, not a position in the list of operations.
  Progress is found by inspecting paths and slots; nothing is logged between operations.
- Every operation is one atomic system call between a path and its slot in the stage. Content
  that comes out of a path is compared afterwards; foreign content is stored (rescued).
- Undo inspects, takes one atomic action, and inspects again, until nothing is left to do: the
  user may save, delete or create files at any moment, also during an undo.

Decision: docs/decisions/0082-undo-by-inspection.md
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

# What its owner needs to make and remove names in a directory.
_ENTERABLE = 0o300
_OPEN = 0o700
_PERMISSIONS = 0o777

# To set it is to set the permissions, in one step.
ACCESS = b"system.posix_acl_access"


class Verb(StrEnum):
    """Kind of an operation; one atomic system call at one path."""

    SWAP = "swap"  # the staged entry and the one at the path change places
    PUT = "put"  # the staged entry goes where nothing is
    TAKE = "take"  # the entry at the path goes into the stage
    REMOVE_DIRECTORY = "remove_directory"  # only if it is empty: the system sees to that
    ADJUST = "adjust"  # a directory stays, and its mode or attributes change


class PathOperation(Struct, frozen=True, gc=False):
    """One operation of a transaction, with all that undoing it requires.

    Each has its own slot in the stage. The contents of slot and path show whether it was executed.
    """

    verb: Verb
    path: RelativePath
    before: PathEntry | None
    after: PathEntry | None
    slot: int

    @property
    def stages(self) -> bool:
        """Whether the slot must hold the new entry before the transaction begins."""
        return self.verb is Verb.SWAP or self.verb is Verb.PUT


def plan_operations(
    changes: Iterable[PathChange], *, can_exchange: bool = True
) -> tuple[PathOperation, ...]:
    """Return the operations for these changes, ordered so that each finds its preconditions.

    Without RENAME_EXCHANGE a changed file is taken away and the new one put in its place: the path
    is missing for a moment, but a concurrent save is never lost.
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
    assert not specials, f"{change.path} is a special file"
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
    """Mode of a directory while entries are added or removed."""
    return replace(directory, mode=directory.mode | _OPEN)


def _adjustments(
    path: RelativePath, before: PathEntry, after: PathEntry
) -> Iterator[PathOperation]:
    """Yield one operation for each system call: a kill leaves none half done.

    A mode that opens the directory comes first, any other last, because it may forbid the rest.
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
        if name == ACCESS and name in new:
            # It contains the permissions.
            want = replace(want, mode=have.mode & ~_PERMISSIONS | after.mode & _PERMISSIONS)
        yield PathOperation(Verb.ADJUST, path, have, want, 0)
        have = want
    if have != after:
        yield PathOperation(Verb.ADJUST, path, have, after, 0)


def _ordered(steps: list[PathOperation]) -> list[PathOperation]:
    """Order: open directories, exchange, remove bottom-up, put top-down, then restrict directories.

    Adjustments of one directory keep their order.
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
        # Which keeps the rest in order.
        *sorted(last, key=lambda step: step.path, reverse=True),
    ]


def _opens(step: PathOperation) -> bool:
    """Whether an operation makes a directory writable that was not."""
    assert step.before and step.after
    opened = step.after.mode & _ENTERABLE == _ENTERABLE
    return opened and step.before.mode & _ENTERABLE != _ENTERABLE


class PathAction(StrEnum):
    """One atomic action at a path; it is refused if its precondition does not hold."""

    EXCHANGE = "exchange"  # path and slot change places; both must be there
    PUT = "put"  # from the slot to the path, where nothing may be
    TAKE = "take"  # from the path into the slot, where nothing may be
    REMOVE_DIRECTORY = "remove_directory"  # at the path, if it is empty
    REMAKE_DIRECTORY = "remake_directory"  # as it was before, where nothing may be
    ADJUST = "adjust"  # mode and attributes of a directory become those after
    READJUST = "readjust"  # mode and attributes of a directory become those before


@dataclass(frozen=True, slots=True)
class Observation:
    """Entries found at the path and in the slot of an operation."""

    at_path: PathEntry | None
    in_slot: PathEntry | None


def next_undo_action(operation: PathOperation, observed: Observation) -> PathAction | None:
    """Return the next action that undoes an operation; None if done or overtaken by the user."""
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
    """Whether a slot holds content of the user that may exist nowhere else."""
    if operation.verb is Verb.REMOVE_DIRECTORY:
        # At most an empty directory from an interrupted undo.
        return False
    return in_slot not in (None, operation.before, operation.after)


def _unswap(operation: PathOperation, observed: Observation) -> PathAction | None:
    if observed.in_slot is None or observed.at_path is None or observed.in_slot == operation.after:
        # Not executed, already undone, or the user deleted the file.
        return None
    if observed.in_slot == operation.before:
        return PathAction.EXCHANGE if observed.at_path == operation.after else None
    """Return the next undo action; None if the operation is undone or the user changed the path."""
    # they saved once more: then the newer version stays at the path.
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
        return PathAction.TAKE
    theirs_came_out = is_foreign(operation, observed.in_slot) and observed.at_path is None
    return PathAction.PUT if theirs_came_out else None


# Each retry needs a save between two system calls.
_STEPS_MAX: Final = 16


class TransactionState(StrEnum):
    """Persistent state of a transaction."""

    PREPARED = "prepared"  # all is staged; some operations may have been carried out
    COMMITTED = "committed"  # all of them were: only tidying is left
    UNDONE = "undone"  # none of them is in effect: only tidying is left


Facts = Mapping[str, object]
"""Facts recorded about an operation, as JSON values."""

_NONE: Final[Facts] = MappingProxyType({})


class Purpose(NamedTuple):
    """Key of a transaction, and the facts that whatever ends it must record."""

    key: str
    facts: Facts = _NONE


@dataclass(frozen=True, slots=True)
class Marker:
    """Persistent record of a transaction that is not finished."""

    key: str
    state: TransactionState
    operations: tuple[PathOperation, ...]
    facts: Facts = field(default_factory=dict[str, object])


class TransactionResult(StrEnum):
    NOTHING = "nothing"  # there was none
    FINISHED = "finished"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class TransactionOutcome:
    """How a transaction ended, and which concurrent changes it met."""

    result: TransactionResult
    key: str = ""  # whose it was
    conflicts: tuple[RelativePath, ...] = ()  # why it was undone, if that is why
    theirs: tuple[RelativePath, ...] = ()  # not undone: changed concurrently, and left so
    rescued: tuple[
        RelativePath, ...
    ] = ()  # where something of theirs came out that is in the store
    is_tidy: bool = True  # else the next opening reports and cleans up
    facts: Facts = field(default_factory=dict[str, object])  # what it was for, if it is told


class MakeStage(Struct, frozen=True, gc=False):
    """Create an empty stage, replacing one that a crash left."""


class StageEntry(Struct, frozen=True, gc=False):
    """Write the new entry of an operation into its slot; not durable before `SyncAll`."""

    operation: PathOperation


class QuickCheckPath(Struct, frozen=True, gc=False):
    """Inspect a path; a file with the expected size, mode and mtime is not read.

    Only before the first operation: later decisions compare content.
    """

    operation: PathOperation


class InspectPath(Struct, frozen=True, gc=False):
    """Return the entry at the path of an operation, by content, or None."""

    operation: PathOperation


class InspectSlot(Struct, frozen=True, gc=False):
    """Return the entry in the slot of an operation, by content, or None."""

    operation: PathOperation


class Apply(Struct, frozen=True, gc=False):
    """Execute one action; the result says whether its precondition held."""

    action: PathAction
    operation: PathOperation


class SyncAll(Struct, frozen=True, gc=False):
    """Make all previous steps durable, contents and names."""


class WriteMarker(Struct, frozen=True, gc=False):
    """Replace the marker durably and atomically; None removes it."""

    state: TransactionState | None


class Rescue(Struct, frozen=True, gc=False):
    """Store the content of a slot durably as a checkpoint."""

    operation: PathOperation


class ReportOutcome(Struct, frozen=True, gc=False):
    """Record the outcome durably; may be repeated after a kill."""

    outcome: TransactionOutcome


class DropStage(Struct, frozen=True, gc=False):
    """Remove the stage with its contents, if it exists."""


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
    """Execute all operations; if a path is not as expected, undo all of them."""
    conflicts = yield from _unexpected(operations, QuickCheckPath)
    if conflicts:
        return TransactionOutcome(TransactionResult.UNDONE, key, conflicts)
    yield MakeStage()
    for operation in operations:
        if operation.stages:
            yield StageEntry(operation)
    yield SyncAll()
    # From here on a crash is undone from the marker; everything it needs is staged and synced.
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
    """Finish or undo an interrupted transaction; idempotent."""
    if marker is None:
        yield DropStage()
        return TransactionOutcome(TransactionResult.NOTHING)
    if marker.state is TransactionState.PREPARED:
        yield from _undo(marker.operations)
        return (yield from _settle(dataclasses_replace(marker, state=TransactionState.UNDONE)))
    # The writer may have died before the marker was durable, and the cleanup below relies on it.
    yield WriteMarker(marker.state)
    return (yield from _settle(marker))


def _unexpected(
    operations: tuple[PathOperation, ...], look: type[QuickCheckPath | InspectPath]
) -> Generator[Step, StepResult, tuple[RelativePath, ...]]:
    """Return paths that differ from their expected entry.

    Finds most conflicts before any change.
    """
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
    """Execute an operation and inspect what came out: only that reveals a concurrent save."""
    if operation.verb is Verb.ADJUST:
        is_expected = (yield InspectPath(operation)) == operation.before
        return is_expected and (yield Apply(PathAction.ADJUST, operation)) is True
    if (yield Apply(_FORWARD[operation.verb], operation)) is not True:
        return False
    if operation.verb not in _FILLED:
        # The slot was not filled.
        return True
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
            # Done, or blocked by a file of the user, which stays.
            return
        before = None if (yield Apply(action, operation)) is True else observed


def _settle(marker: Marker, conflicts: tuple[RelativePath, ...] = ()) -> StepGenerator:
    """Rescue foreign content, report, and clean up; the outcome is already decided."""
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


# What fills its slot with what was at the path.
_FILLED: Final = {Verb.SWAP, Verb.TAKE}
_USED: Final = {*_FILLED, Verb.PUT}


def _entry(answer: StepResult) -> PathEntry | None:
    assert not isinstance(answer, bool)
    return answer
