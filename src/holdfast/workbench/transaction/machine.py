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


class Operation(Struct, frozen=True, gc=False):
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


def lay_out(changes: Iterable[PathChange], *, can_exchange: bool = True) -> tuple[Operation, ...]:
    """The operations that make these changes, so ordered that each finds what it needs.

    Without an exchange of names in one step, a changed file is taken away and the new one put in
    its place: for a moment there is none, but whatever a person saved just then is never lost.
    """
    changes = sorted(changes, key=lambda change: change.path)
    assert len({change.path for change in changes}) == len(changes), "one change for each path"
    steps = [step for change in changes for step in _steps(change, can_exchange)]
    return tuple(
        Operation(step.verb, step.path, step.before, step.after, slot)
        for slot, step in enumerate(_ordered(steps))
    )


def _steps(change: PathChange, can_exchange: bool) -> Iterator[Operation]:
    before, after = change.before, change.after
    specials = [one for one in (before, after) if one and one.kind is EntryKind.SPECIAL]
    assert not specials, f"{change.path} is nothing that can be stored"
    if before and after and before.is_directory and after.is_directory:
        yield from _adjustments(change.path, before, after)
        return
    plain = before and after and not before.is_directory and not after.is_directory
    if plain and can_exchange:
        yield Operation(Verb.SWAP, change.path, before, after, 0)
        return
    if before and before.is_directory:
        emptied = _open(before) if before.mode & _ENTERABLE != _ENTERABLE else before
        yield from _adjustments(change.path, before, emptied)
        yield Operation(Verb.REMOVE_DIRECTORY, change.path, emptied, None, 0)
    elif before:
        yield Operation(Verb.TAKE, change.path, before, None, 0)
    if after:
        made = _open(after) if after.is_directory else after
        yield Operation(Verb.PUT, change.path, None, made, 0)
        yield from _adjustments(change.path, made, after)


def _open(directory: PathEntry) -> PathEntry:
    """As it is while something is put into it or taken out of it."""
    return replace(directory, mode=directory.mode | _OPEN)


def _adjustments(path: RelativePath, before: PathEntry, after: PathEntry) -> Iterator[Operation]:
    """One step for all that one system call changes: a kill leaves none of them half done.

    A mode that opens the directory comes first, any other last: it may rule out the rest.
    """
    have, opened = before, replace(before, mode=after.mode)
    first = Operation(Verb.ADJUST, path, before, opened, 0)
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
        yield Operation(Verb.ADJUST, path, have, want, 0)
        have = want
    if have != after:
        yield Operation(Verb.ADJUST, path, have, after, 0)


def _ordered(steps: list[Operation]) -> list[Operation]:
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


def _opens(step: Operation) -> bool:
    """Whether names can be made in a directory after it, and could not before."""
    assert step.before and step.after
    opened = step.after.mode & _ENTERABLE == _ENTERABLE
    return opened and step.before.mode & _ENTERABLE != _ENTERABLE


class Deed(StrEnum):
    """One atomic step at a path of the project; it is refused when the world is not as thought."""

    EXCHANGE = "exchange"  # path and slot change places; both must be there
    PUT = "put"  # from the slot to the path, where nothing may be
    TAKE = "take"  # from the path into the slot, where nothing may be
    REMOVE_DIRECTORY = "remove_directory"  # at the path, if it is empty
    REMAKE_DIRECTORY = "remake_directory"  # as it was before, where nothing may be
    ADJUST = "adjust"  # mode and attributes of a directory become those after
    READJUST = "readjust"  # mode and attributes of a directory become those before


@dataclass(frozen=True, slots=True)
class Sight:
    """What is found for one operation."""

    at_path: PathEntry | None
    in_slot: PathEntry | None


def next_deed(operation: Operation, sight: Sight) -> Deed | None:
    """The step that brings the path closer to how it was; None when it is, or is theirs."""
    match operation.verb:
        case Verb.SWAP:
            return _unswap(operation, sight)
        case Verb.PUT:
            return _unput(operation, sight)
        case Verb.TAKE:
            is_away = sight.in_slot is not None and sight.at_path is None
            return Deed.PUT if is_away else None
        case Verb.REMOVE_DIRECTORY:
            return Deed.REMAKE_DIRECTORY if sight.at_path is None else None
        case Verb.ADJUST:
            return Deed.READJUST if sight.at_path == operation.after else None


def is_unknown(operation: Operation, in_slot: PathEntry | None) -> bool:
    """Whether what is in the slot is something of the person's that may be nowhere else."""
    if operation.verb is Verb.REMOVE_DIRECTORY:
        return False  # at most a directory that somebody was about to make again
    return in_slot not in (None, operation.before, operation.after)


def _unswap(operation: Operation, sight: Sight) -> Deed | None:
    if sight.in_slot is None or sight.at_path is None or sight.in_slot == operation.after:
        return None  # not begun or undone already; or they deleted the file, which is their right
    if sight.in_slot == operation.before:
        return Deed.EXCHANGE if sight.at_path == operation.after else None
    # Theirs came out: they had saved just before. Whatever of ours is in its place goes; if they
    # saved once more, the later one stays.
    is_newer = sight.in_slot.mtime_ns > sight.at_path.mtime_ns and not sight.at_path.is_directory
    goes_back = is_newer or sight.at_path in (operation.before, operation.after)
    return Deed.EXCHANGE if goes_back else None


def _unput(operation: Operation, sight: Sight) -> Deed | None:
    assert operation.after is not None
    if sight.at_path == operation.after and sight.in_slot is None:
        # A directory is not moved away: what a person puts into it would go along.
        return Deed.REMOVE_DIRECTORY if operation.after.is_directory else Deed.TAKE
    if sight.at_path == operation.after == sight.in_slot:
        return Deed.TAKE  # if it is one file of two names, who put it there was killed halfway
    theirs_came_out = is_unknown(operation, sight.in_slot) and sight.at_path is None
    return Deed.PUT if theirs_came_out else None


_STEPS_MAX: Final = 16  # each needs a person who saves between two system calls


class State(StrEnum):
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
    state: State
    operations: tuple[Operation, ...]
    facts: Facts = field(default_factory=dict[str, object])


class Way(StrEnum):
    """Which way a transaction went."""

    NOTHING = "nothing"  # there was none
    FINISHED = "finished"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a transaction ended, and what of the person's was met on the way."""

    way: Way
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


class Stage(Struct, frozen=True, gc=False):
    """Write the new entry of an operation into its slot; it need not be durable yet."""

    operation: Operation


class GlanceAtPath(Struct, frozen=True, gc=False):
    """Say what is at the path of an operation; a file whose size, mode and time fit is as expected.

    Only before anything has begun: what comes out of the path is looked at by its content.
    """

    operation: Operation


class LookAtPath(Struct, frozen=True, gc=False):
    """Say what is at the path of an operation, by content; answered with that, or None."""

    operation: Operation


class LookInSlot(Struct, frozen=True, gc=False):
    """Say what is in the slot of an operation, by content; answered with that, or None."""

    operation: Operation


class Do(Struct, frozen=True, gc=False):
    """Take one atomic step; answered with whether it was possible."""

    deed: Deed
    operation: Operation


class Sync(Struct, frozen=True, gc=False):
    """Make durable whatever was done before, files and names alike."""


class Mark(Struct, frozen=True, gc=False):
    """Replace the marker, durably and in one step; without a state, remove it."""

    state: State | None


class Rescue(Struct, frozen=True, gc=False):
    """Keep what is in the slot of an operation in the store, durably."""

    operation: Operation


class Tell(Struct, frozen=True, gc=False):
    """Write the outcome down, durably; after a kill it may be asked again."""

    outcome: Outcome


class DropStage(Struct, frozen=True, gc=False):
    """Remove the stage and all that is in it, if it is there."""


Look = GlanceAtPath | LookAtPath | LookInSlot
Act = MakeStage | Stage | Look | Do | Sync | Mark | Rescue | Tell | DropStage
Answer = PathEntry | bool | None
Run = Generator[Act, Answer, Outcome]


def publish(operations: tuple[Operation, ...], key: str) -> Run:
    """Bring all operations into effect, or none: if the project is not as expected, undo all."""
    conflicts = yield from _unexpected(operations, GlanceAtPath)
    if conflicts:
        return Outcome(Way.UNDONE, key, conflicts)
    yield MakeStage()
    for operation in operations:
        if operation.stages:
            yield Stage(operation)
    yield Sync()
    yield Mark(State.PREPARED)
    for operation in operations:
        if not (yield from _carry_out(operation)):
            yield from _undo(operations)
            undone = Marker(key, State.UNDONE, operations)
            return (yield from _settle(undone, (operation.path,)))
    yield Sync()
    yield Mark(State.COMMITTED)
    return (yield from _settle(Marker(key, State.COMMITTED, operations)))


def recover(marker: Marker | None) -> Run:
    """Finish or undo what somebody else began; safe to be killed, and to be run again."""
    if marker is None:
        yield DropStage()
        return Outcome(Way.NOTHING)
    if marker.state is State.PREPARED:
        yield from _undo(marker.operations)
        return (yield from _settle(dataclasses_replace(marker, state=State.UNDONE)))
    # Who wrote it may have died before it was durable, and all that is tidied away relies on it.
    yield Mark(marker.state)
    return (yield from _settle(marker))


def _unexpected(
    operations: tuple[Operation, ...], look: type[GlanceAtPath | LookAtPath]
) -> Generator[Act, Answer, tuple[RelativePath, ...]]:
    """The paths that are not as they were; most conflicts are seen so before anything begins."""
    first: dict[RelativePath, Operation] = {}
    for operation in operations:
        first.setdefault(operation.path, operation)
    found: list[RelativePath] = []
    for operation in first.values():
        at_path = yield look(operation)
        if at_path != operation.before:
            found.append(operation.path)
    return tuple(sorted(found))


def _carry_out(operation: Operation) -> Generator[Act, Answer, bool]:
    """Do it, then look at what came out: only that tells whether somebody was faster."""
    if operation.verb is Verb.ADJUST:
        is_expected = (yield LookAtPath(operation)) == operation.before
        return is_expected and (yield Do(Deed.ADJUST, operation)) is True
    if (yield Do(_FORWARD[operation.verb], operation)) is not True:
        return False
    if operation.verb not in _FILLED:
        return True  # there was nothing that could have come out
    return (yield LookInSlot(operation)) == operation.before


_FORWARD: Final = {
    Verb.SWAP: Deed.EXCHANGE,
    Verb.PUT: Deed.PUT,
    Verb.TAKE: Deed.TAKE,
    Verb.REMOVE_DIRECTORY: Deed.REMOVE_DIRECTORY,
}


def _undo(operations: tuple[Operation, ...]) -> Generator[Act, Answer, None]:
    for operation in reversed(operations):
        yield from _undo_one(operation)
    yield Sync()
    yield Mark(State.UNDONE)


def _undo_one(operation: Operation) -> Generator[Act, Answer, None]:
    before: Sight | None = None
    for _ in range(_STEPS_MAX):
        at_path = _entry((yield LookAtPath(operation)))
        sight = Sight(at_path, _entry((yield LookInSlot(operation))))
        deed = next_deed(operation, sight)
        if deed is None or sight == before:
            return  # or it cannot be done: something of theirs is in the way, and stays
        before = None if (yield Do(deed, operation)) is True else sight


def _settle(marker: Marker, conflicts: tuple[RelativePath, ...] = ()) -> Run:
    """Keep what is only in the stage, tell, and tidy up; the transaction is over already."""
    is_committed = marker.state is State.COMMITTED
    rescued: set[RelativePath] = set()
    for operation in marker.operations:
        if operation.verb in (_FILLED if is_committed else _USED):
            in_slot = _entry((yield LookInSlot(operation)))
            if is_unknown(operation, in_slot):
                yield Rescue(operation)
                rescued.add(operation.path)
    outcome = Outcome(Way.FINISHED, marker.key, rescued=tuple(sorted(rescued)))
    if not is_committed:
        theirs = yield from _unexpected(marker.operations, LookAtPath)
        outcome = dataclasses_replace(outcome, way=Way.UNDONE, conflicts=conflicts, theirs=theirs)
    yield Tell(outcome)
    yield DropStage()
    yield Mark(None)
    return outcome


_FILLED: Final = {Verb.SWAP, Verb.TAKE}  # what fills its slot with what was at the path
_USED: Final = {*_FILLED, Verb.PUT}


def _entry(answer: Answer) -> PathEntry | None:
    assert not isinstance(answer, bool)
    return answer
