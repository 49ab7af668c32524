"""Lay out what a transaction does to the project: which operations, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from holdfast.nouns import RelativePath
from holdfast.workbench.model import Change, Entry, Sort

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
    before: Entry | None
    after: Entry | None
    slot: int

    @property
    def stages(self) -> bool:
        """Whether its slot must hold the new entry before anything begins."""
        return self.verb is Verb.SWAP or self.verb is Verb.PUT


def lay_out(changes: Iterable[Change], *, can_exchange: bool = True) -> tuple[Operation, ...]:
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


def _steps(change: Change, can_exchange: bool) -> Iterator[Operation]:
    before, after = change.before, change.after
    specials = [one for one in (before, after) if one and one.sort is Sort.SPECIAL]
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


def _open(directory: Entry) -> Entry:
    """As it is while something is put into it or taken out of it."""
    return replace(directory, mode=directory.mode | _OPEN)


def _adjustments(path: RelativePath, before: Entry, after: Entry) -> Iterator[Operation]:
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
