"""Carry a transaction out, or undo it, one act at a time: publish, restore and batches.

    look, stage ──▶ prepared ──every operation──▶ committed ──▶ rescue, tell, clean up
                       │                                              ▲
                       └── conflict, failure or kill ──▶ undone ──────┘

The marker on disk knows these three states and nothing of how far one came. Nothing here touches
a disk: `publish` and `recover` yield what must be done and are sent what came of it. Whoever
carries the acts out may be killed before and after each of them, and runs `recover` next time.
An act that fails ends the run: close it, read the marker again, and run `recover`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.core.operations import Operation, Verb
from holdfast.workbench.core.undoing import Deed, Sight, is_unknown, next_deed
from holdfast.workbench.model import Entry

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


@dataclass(frozen=True, slots=True)
class MakeStage:
    """Make a stage in which there is nothing, also if there is one of somebody who died."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Write the new entry of an operation into its slot; it need not be durable yet."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class GlanceAtPath:
    """Say what is at the path of an operation; a file whose size, mode and time fit is as expected.

    Only before anything has begun: what comes out of the path is looked at by its content.
    """

    operation: Operation


@dataclass(frozen=True, slots=True)
class LookAtPath:
    """Say what is at the path of an operation, by content; answered with that, or None."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class LookInSlot:
    """Say what is in the slot of an operation, by content; answered with that, or None."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Do:
    """Take one atomic step; answered with whether it was possible."""

    deed: Deed
    operation: Operation


@dataclass(frozen=True, slots=True)
class Sync:
    """Make durable whatever was done before, files and names alike."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Replace the marker, durably and in one step; without a state, remove it."""

    state: State | None


@dataclass(frozen=True, slots=True)
class Rescue:
    """Keep what is in the slot of an operation in the store, durably."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Tell:
    """Write the outcome down, durably; after a kill it may be asked again."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DropStage:
    """Remove the stage and all that is in it, if it is there."""


Look = GlanceAtPath | LookAtPath | LookInSlot
Act = MakeStage | Stage | Look | Do | Sync | Mark | Rescue | Tell | DropStage
Answer = Entry | bool | None
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
        return (yield from _settle(replace(marker, state=State.UNDONE)))
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
        at_path = yield from _look(look(operation))
        if at_path != operation.before:
            found.append(operation.path)
    return tuple(sorted(found))


def _carry_out(operation: Operation) -> Generator[Act, Answer, bool]:
    """Do it, then look at what came out: only that tells whether somebody was faster."""
    if operation.verb is Verb.ADJUST:
        at_path = yield from _look(LookAtPath(operation))
        return at_path == operation.before and (yield from _do(Deed.ADJUST, operation))
    if not (yield from _do(_FORWARD[operation.verb], operation)):
        return False
    if operation.verb in {Verb.PUT, Verb.REMOVE_DIRECTORY}:
        return True  # there was nothing that could have come out
    in_slot = yield from _look(LookInSlot(operation))
    return in_slot == operation.before


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
        at_path = yield from _look(LookAtPath(operation))
        sight = Sight(at_path, (yield from _look(LookInSlot(operation))))
        deed = next_deed(operation, sight)
        if deed is None or sight == before:
            return  # or it cannot be done: something of theirs is in the way, and stays
        before = None if (yield from _do(deed, operation)) else sight


def _settle(marker: Marker, conflicts: tuple[RelativePath, ...] = ()) -> Run:
    """Keep what is only in the stage, tell, and tidy up; the transaction is over already."""
    is_committed = marker.state is State.COMMITTED
    rescued: set[RelativePath] = set()
    for operation in marker.operations:
        if operation.verb in (_FILLED if is_committed else _USED):
            in_slot = yield from _look(LookInSlot(operation))
            if is_unknown(operation, in_slot):
                yield Rescue(operation)
                rescued.add(operation.path)
    outcome = Outcome(Way.FINISHED, marker.key, rescued=tuple(sorted(rescued)))
    if not is_committed:
        theirs = yield from _unexpected(marker.operations, LookAtPath)
        outcome = replace(outcome, way=Way.UNDONE, conflicts=conflicts, theirs=theirs)
    yield Tell(outcome)
    yield DropStage()
    yield Mark(None)
    return outcome


_FILLED: Final = {Verb.SWAP, Verb.TAKE}  # what fills its slot with what was at the path
_USED: Final = {*_FILLED, Verb.PUT}


def _look(act: Look) -> Generator[Act, Answer, Entry | None]:
    answer = yield act
    assert not isinstance(answer, bool)
    return answer


def _do(deed: Deed, operation: Operation) -> Generator[Act, Answer, bool]:
    answer = yield Do(deed, operation)
    assert isinstance(answer, bool)
    return answer
