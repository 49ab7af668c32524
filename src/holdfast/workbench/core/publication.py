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

from msgspec import Struct

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
        outcome = replace(outcome, way=Way.UNDONE, conflicts=conflicts, theirs=theirs)
    yield Tell(outcome)
    yield DropStage()
    yield Mark(None)
    return outcome


_FILLED: Final = {Verb.SWAP, Verb.TAKE}  # what fills its slot with what was at the path
_USED: Final = {*_FILLED, Verb.PUT}


def _entry(answer: Answer) -> Entry | None:
    assert not isinstance(answer, bool)
    return answer
