"""How much room a store takes, and how it takes less: old checkpoints go.

Killed anywhere, it loses nothing that stays. What goes is written down in a segment first: from
then on it counts no more, even if the index is made anew. What is needed of a segment is copied to
a new one and synced, then the index says where it is, and only then the old segment goes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeVar

from holdfast.nouns import Id
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.model import Checkpoint, News, Occasion, Progress, quiet
from holdfast.workbench.objects.formats import (
    SEGMENT_HEAD_BYTES,
    WHOLE_BYTES_MAX,
    Node,
    NodeSort,
    ObjectSort,
    names_in,
)
from holdfast.workbench.objects.object_store import Vault
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.objects.segments import Location
from holdfast.workbench.store.retention import KEPT_LEAST, prune_order, surplus
from holdfast.workbench.store.store import Store, named_checkpoints
from holdfast.world import disk_failure
from holdfast.world.failures import DiskFull, DiskQuota

# Find out which objects are needed, and how much room they take.


class Marking:
    """The objects that some checkpoints consist of; of each segment, how many bytes they take."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.names: set[bytes] = set()
        self.bytes_in: Counter[int] = Counter()

    @property
    def room(self) -> int:
        """How much room all of them take."""
        return self.bytes_in.total()

    def add(self, name: bytes, tree: bytes) -> dict[bytes, Location]:
        """Mark a checkpoint and all that it consists of; return what was not marked before."""
        added: dict[bytes, Location] = {}
        self._mark(name, added)
        waiting = [tree] if tree not in self.names else []
        while waiting:
            directory = waiting.pop()
            self._mark(directory, added)
            for node in self._nodes(directory):
                if node.object in self.names:
                    continue
                if node.sort is NodeSort.DIRECTORY:
                    waiting.append(node.object)
                elif node.sort is NodeSort.FILE:
                    self._mark_content(node, added)
        return added

    def take_back(self, added: dict[bytes, Location]) -> None:
        """Undo the last marking."""
        self.names -= added.keys()
        for location in added.values():
            self.bytes_in[location.segment] -= location.room

    def _mark_content(self, node: Node, added: dict[bytes, Location]) -> None:
        self._mark(node.object, added)
        if node.size > WHOLE_BYTES_MAX:
            for piece in self._pieces(node.object):
                self._mark(piece, added)

    def _mark(self, name: bytes, added: dict[bytes, Location]) -> None:
        location = self._objects.location(name)
        if location is not None and name not in self.names:
            self.names.add(name)
            self.bytes_in[location.segment] += location.room
            added[name] = location

    def _nodes(self, tree: bytes) -> tuple[Node, ...]:
        try:
            return self._objects.tree(tree)
        except (ObjectMissing, ObjectDamaged):  # what was below it cannot be reached by anybody
            return ()

    def _pieces(self, name: bytes) -> list[bytes]:
        try:
            return names_in(self._objects.get(name)[1])
        except (ObjectMissing, ObjectDamaged):
            return []


_QUOTA_BYTES_MAX = 20 * 10**9
_QUOTA_SHARE = 20  # of the disk
_WORTH_SHARE = 4  # a segment is copied if so much of it is not needed

Answer = TypeVar("Answer")


class Load(NamedTuple):
    """How much is kept, and how much it should be at most."""

    checkpoints: int
    kept_bytes: int
    quota_bytes: int


class Usage(NamedTuple):
    """How much room a store takes, how much is left, and how much it should take at most."""

    checkpoints: int
    kept_bytes: int
    index_bytes: int
    reserve_bytes: int
    free_bytes: int
    quota_bytes: int


class Pruned(NamedTuple):
    """What went, or would go: checkpoints, and the bytes of what is kept, before and after."""

    checkpoints: tuple[Id, ...]
    bytes_before: int
    bytes_after: int
    manual_kept: int = 0  # manual checkpoints that stay because nobody named them


class _Limits(NamedTuple):
    quota_bytes: int | None
    kept_least: int
    in_use: Collection[Id]
    with_manual: bool


class _Plan(NamedTuple):
    going: dict[bytes, Id]
    manual_kept: int
    needed: frozenset[bytes]
    bytes_in: dict[int, int]


def usage(store: Store) -> Usage:
    """Say how much room a store takes, without reading what is in it."""
    vault = store.vault
    there = _there(vault)
    with os.scandir(vault.directory) as entries:
        index = [each.stat().st_size for each in entries if each.name.startswith("wb.db")]
    kept = load(store)
    return Usage(
        checkpoints=kept.checkpoints,
        kept_bytes=kept.kept_bytes,
        index_bytes=sum(index),
        reserve_bytes=vault.reserve.held_bytes,
        free_bytes=there.f_bavail * there.f_frsize,
        quota_bytes=kept.quota_bytes,
    )


def load(store: Store) -> Load:
    """The part of `usage` that says whether something must go; it is asked after every deed."""
    vault = store.vault
    there = _there(vault)
    return Load(
        checkpoints=vault.read(lambda objects: objects.rows.roster.count()),
        kept_bytes=_bytes(vault),
        quota_bytes=min(_QUOTA_BYTES_MAX, there.f_blocks * there.f_frsize // _QUOTA_SHARE),
    )


def _there(vault: Vault) -> os.statvfs_result:
    try:
        return os.statvfs(vault.directory)
    except OSError as error:
        raise disk_failure(error, path=str(vault.directory)) from error


def prune(  # noqa: PLR0913  # limits, all by keyword
    store: Store,
    *,
    quota_bytes: int | None = None,
    kept_least: int = KEPT_LEAST,
    in_use: Collection[Id] = (),
    with_manual: bool = False,
    is_trial: bool = False,
    news: News = quiet,
) -> Pruned:
    """Remove old checkpoints, and give back the room of what only they needed.

    What is more than `kept_least` goes by its age; below that, only what is above the quota. What
    is in use stays in any case, and so do manual checkpoints unless `with_manual`. A trial says
    what would go, and how much the rest would take.
    """
    vault = store.vault
    before = _bytes(vault)
    limits = _Limits(quota_bytes, kept_least, in_use, with_manual)
    plan = vault.read(lambda objects: _plan(objects, limits))
    going = tuple(sorted(plan.going.values()))
    if is_trial:
        return Pruned(going, before, min(before, sum(plan.bytes_in.values())), plan.manual_kept)
    tombstone = _at_last(vault, lambda objects: _let_go(objects, plan))
    needed = plan.needed if tombstone is None else plan.needed | {tombstone}
    most = before if quota_bytes is None else quota_bytes
    worth = _worth_copying(vault, plan.bytes_in, is_over=before > most)
    vault.segments.renew()
    for count, (is_mostly_needed, _, number) in enumerate(worth, 1):
        if is_mostly_needed and _bytes(vault) <= most:
            break
        _copy(vault, number, needed)
        news(Progress("segments tidied", count, len(worth)))
    return Pruned(going, before, _bytes(vault), plan.manual_kept)


def _plan(objects: Objects, limits: _Limits) -> _Plan:
    """What goes: first the surplus, then from the other end as much as is above the quota."""
    named = {made.id: (name, made) for name, made in named_checkpoints(objects)}
    all_made = [made for _, made in named.values()]
    order = prune_order(all_made, in_use=limits.in_use, with_manual=limits.with_manual)
    going = set(surplus(order, count=len(all_made), kept_least=limits.kept_least))
    marking = Marking(objects)
    is_over = False
    for made in _the_dearest_first(all_made, order):
        name, may_go = named[made.id][0], made.id in order
        if made.id in going or (is_over and may_go):
            going.add(made.id)
            continue
        added = marking.add(name, made.tree)
        if may_go and limits.quota_bytes is not None and marking.room > limits.quota_bytes:
            marking.take_back(added)
            going.add(made.id)
            is_over = True
    manual_kept = sum(
        made.occasion is Occasion.MANUAL and made.id not in going for made in all_made
    )
    return _Plan(
        {named[id][0]: id for id in going},
        manual_kept,
        frozenset(marking.names),
        dict(marking.bytes_in),
    )


def _the_dearest_first(
    checkpoints: list[Checkpoint], order: tuple[Id, ...]
) -> Iterator[Checkpoint]:
    """What stays in any case, then what may go, the last to go first."""
    turns = {id: turn for turn, id in enumerate(order)}
    yield from sorted(checkpoints, key=lambda made: -turns.get(made.id, len(turns)))


def _let_go(objects: Objects, plan: _Plan) -> bytes | None:
    """Write down what counts no more; return the name of what says so, if there is anything."""
    roster = objects.rows.roster
    roster.prune(plan.going.keys())
    objects.rows.sights.forget_others(plan.needed)
    pruned = roster.pruned()
    return objects.put(ObjectSort.PRUNED, b"".join(pruned)) if pruned else None


def _worth_copying(
    vault: Vault, bytes_in: dict[int, int], *, is_over: bool
) -> list[tuple[bool, int, int]]:
    """The segments of which much is not needed, first those that give back room at once.

    Above the quota also those that are mostly needed, after all others.
    """
    worth: list[tuple[bool, int, int]] = []
    for number in vault.segments.numbers():
        size, needed = vault.segments.size(number), bytes_in.get(number, 0)
        spare = size - SEGMENT_HEAD_BYTES - needed
        is_mostly_needed = spare * _WORTH_SHARE < size
        if spare > 0 and (is_over or not is_mostly_needed):
            worth.append((is_mostly_needed, needed, number))
    return sorted(worth)


def _copy(vault: Vault, number: int, needed: Collection[bytes]) -> None:
    """Have what is needed of a segment elsewhere, and then the segment no more."""
    _at_last(vault, lambda objects: objects.leave(number, needed))
    segments = vault.segments
    if number != max(segments.numbers()):  # a number is never used again
        segments.drop(number)


def _at_last(vault: Vault, work: Callable[[Objects], Answer]) -> Answer:
    """Change something; on a full disk with the room that was kept back for such a moment."""
    try:
        return vault.change(work)
    except (DiskFull, DiskQuota):
        return vault.change(work)


def _bytes(vault: Vault) -> int:
    return sum(vault.segments.size(number) for number in vault.segments.numbers())
