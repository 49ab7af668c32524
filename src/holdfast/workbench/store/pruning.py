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
from holdfast.workbench.model import (
    Checkpoint,
    Occasion,
    ProgressCallback,
    WorkProgress,
    ignore_progress,
)
from holdfast.workbench.objects.formats import (
    SEGMENT_HEADER_BYTES,
    WHOLE_BYTES_MAX,
    Node,
    NodeKind,
    ObjectKind,
    names_in,
)
from holdfast.workbench.objects.object_store import ObjectStore
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.objects.segments import Location
from holdfast.workbench.store.retention import KEEP_MIN, prune_order, surplus
from holdfast.workbench.store.store import Store, named_checkpoints
from holdfast.world import disk_failure
from holdfast.world.failures import DiskFull, DiskQuota

# Find out which objects are needed, and how much room they take.


class ReachableObjects:
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
                if node.kind is NodeKind.DIRECTORY:
                    waiting.append(node.object)
                elif node.kind is NodeKind.FILE:
                    self._mark_content(node, added)
        return added

    def unmark(self, added: dict[bytes, Location]) -> None:
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


class StorageLoad(NamedTuple):
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
    keep_min: int
    in_use: Collection[Id]
    with_manual: bool


class _Plan(NamedTuple):
    going: dict[bytes, Id]
    manual_kept: int
    needed: frozenset[bytes]
    bytes_in: dict[int, int]


def usage(store: Store) -> Usage:
    """Say how much room a store takes, without reading what is in it."""
    object_store = store.object_store
    there = _there(object_store)
    with os.scandir(object_store.directory) as entries:
        index = [each.stat().st_size for each in entries if each.name.startswith("wb.db")]
    kept = load(store)
    return Usage(
        checkpoints=kept.checkpoints,
        kept_bytes=kept.kept_bytes,
        index_bytes=sum(index),
        reserve_bytes=object_store.reserve.held_bytes,
        free_bytes=there.f_bavail * there.f_frsize,
        quota_bytes=kept.quota_bytes,
    )


def load(store: Store) -> StorageLoad:
    """The part of `usage` that says whether something must go; it is asked after every deed."""
    object_store = store.object_store
    there = _there(object_store)
    return StorageLoad(
        checkpoints=object_store.read(lambda objects: objects.rows.checkpoints.count()),
        kept_bytes=_bytes(object_store),
        quota_bytes=min(_QUOTA_BYTES_MAX, there.f_blocks * there.f_frsize // _QUOTA_SHARE),
    )


def _there(object_store: ObjectStore) -> os.statvfs_result:
    try:
        return os.statvfs(object_store.directory)
    except OSError as error:
        raise disk_failure(error, path=str(object_store.directory)) from error


def prune(  # noqa: PLR0913  # limits, all by keyword
    store: Store,
    *,
    quota_bytes: int | None = None,
    keep_min: int = KEEP_MIN,
    in_use: Collection[Id] = (),
    with_manual: bool = False,
    is_trial: bool = False,
    on_progress: ProgressCallback = ignore_progress,
) -> Pruned:
    """Remove old checkpoints, and give back the room of what only they needed.

    What is more than `keep_min` goes by its age; below that, only what is above the quota. What
    is in use stays in any case, and so do manual checkpoints unless `with_manual`. A trial says
    what would go, and how much the rest would take.
    """
    object_store = store.object_store
    before = _bytes(object_store)
    limits = _Limits(quota_bytes, keep_min, in_use, with_manual)
    plan = object_store.read(lambda objects: _plan(objects, limits))
    going = tuple(sorted(plan.going.values()))
    if is_trial:
        return Pruned(going, before, min(before, sum(plan.bytes_in.values())), plan.manual_kept)
    tombstone = _with_reserve(object_store, lambda objects: _write_tombstone(objects, plan))
    needed = plan.needed if tombstone is None else plan.needed | {tombstone}
    most = before if quota_bytes is None else quota_bytes
    worth = _worth_copying(object_store, plan.bytes_in, is_over=before > most)
    object_store.segments.renew()
    for count, (is_mostly_needed, _, number) in enumerate(worth, 1):
        if is_mostly_needed and _bytes(object_store) <= most:
            break
        _copy(object_store, number, needed)
        on_progress(WorkProgress("segments tidied", count, len(worth)))
    return Pruned(going, before, _bytes(object_store), plan.manual_kept)


def _plan(objects: Objects, limits: _Limits) -> _Plan:
    """What goes: first the surplus, then from the other end as much as is above the quota."""
    named = {made.id: (name, made) for name, made in named_checkpoints(objects)}
    all_made = [made for _, made in named.values()]
    order = prune_order(all_made, in_use=limits.in_use, with_manual=limits.with_manual)
    going = set(surplus(order, count=len(all_made), keep_min=limits.keep_min))
    marking = ReachableObjects(objects)
    is_over = False
    for made in _by_retention_priority(all_made, order):
        name, may_go = named[made.id][0], made.id in order
        if made.id in going or (is_over and may_go):
            going.add(made.id)
            continue
        added = marking.add(name, made.tree)
        if may_go and limits.quota_bytes is not None and marking.room > limits.quota_bytes:
            marking.unmark(added)
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


def _by_retention_priority(
    checkpoints: list[Checkpoint], order: tuple[Id, ...]
) -> Iterator[Checkpoint]:
    """What stays in any case, then what may go, the last to go first."""
    turns = {id: turn for turn, id in enumerate(order)}
    yield from sorted(checkpoints, key=lambda made: -turns.get(made.id, len(turns)))


def _write_tombstone(objects: Objects, plan: _Plan) -> bytes | None:
    """Write down what counts no more; return the name of what says so, if there is anything."""
    roster = objects.rows.checkpoints
    roster.prune(plan.going.keys())
    objects.rows.stat_cache.forget_others(plan.needed)
    pruned = roster.pruned()
    return objects.put(ObjectKind.PRUNED, b"".join(pruned)) if pruned else None


def _worth_copying(
    object_store: ObjectStore, bytes_in: dict[int, int], *, is_over: bool
) -> list[tuple[bool, int, int]]:
    """The segments of which much is not needed, first those that give back room at once.

    Above the quota also those that are mostly needed, after all others.
    """
    worth: list[tuple[bool, int, int]] = []
    for number in object_store.segments.numbers():
        size, needed = object_store.segments.size(number), bytes_in.get(number, 0)
        spare = size - SEGMENT_HEADER_BYTES - needed
        is_mostly_needed = spare * _WORTH_SHARE < size
        if spare > 0 and (is_over or not is_mostly_needed):
            worth.append((is_mostly_needed, needed, number))
    return sorted(worth)


def _copy(object_store: ObjectStore, number: int, needed: Collection[bytes]) -> None:
    """Have what is needed of a segment elsewhere, and then the segment no more."""
    _with_reserve(object_store, lambda objects: objects.leave(number, needed))
    segments = object_store.segments
    if number != max(segments.numbers()):  # a number is never used again
        segments.drop(number)


def _with_reserve(object_store: ObjectStore, work: Callable[[Objects], Answer]) -> Answer:
    """Change something; on a full disk with the room that was kept back for such a moment."""
    try:
        return object_store.change(work)
    except (DiskFull, DiskQuota):
        return object_store.change(work)


def _bytes(object_store: ObjectStore) -> int:
    return sum(object_store.segments.size(number) for number in object_store.segments.numbers())
