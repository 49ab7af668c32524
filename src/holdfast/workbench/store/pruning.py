"""Pruning: remove old checkpoints and reclaim their space by copying live objects.

Safe to kill at any point. Removed checkpoints are first listed in a tombstone object, which is
durable before anything else changes, so that a rebuilt index does not revive them. Then, segment by
segment: live objects are copied to a new segment and synced, the index is updated, and only then
the old file is deleted.

Retention: automatic checkpoints are removed before manual ones, old before new. Checkpoints that
drafts build on, the newest one, and the last of each kind that a person would restore, are never
removed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

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
from holdfast.workbench.store.store import Store, named_checkpoints
from holdfast.world import disk_failure
from holdfast.world.failures import DiskFull, DiskQuota

# Checkpoints kept while there is space.
KEEP_MIN: Final = 1000

_RANK: Final = {
    Occasion.AUTO: 0,
    Occasion.MANUAL: 1,
    Occasion.PRE_RESTORE: 2,
    Occasion.PUBLISH: 2,
}
assert _RANK.keys() == set(Occasion), "every occasion has a rank"


def prune_order(
    checkpoints: Sequence[Checkpoint], *, in_use: Collection[Id] = (), with_manual: bool = False
) -> tuple[Id, ...]:
    """Return removable checkpoints in order of removal: automatic before manual, old before new.

    Excluded are checkpoints in use, the newest of all, the newest made by a publish and by a
    restore, and manual ones unless `with_manual`.
    """
    manual = [] if with_manual else _of(checkpoints, Occasion.MANUAL)
    kept = {
        *in_use,
        *(one.id for one in manual),
        *_latest(checkpoints),
        *_latest(_of(checkpoints, Occasion.PUBLISH)),
    }
    kept.update(_latest(_of(checkpoints, Occasion.PRE_RESTORE)))
    prunable = [checkpoint for checkpoint in checkpoints if checkpoint.id not in kept]
    prunable.sort(key=lambda one: (_RANK[one.occasion], one.at_ms, one.id))
    return tuple(checkpoint.id for checkpoint in prunable)


def surplus(order: Sequence[Id], *, count: int, keep_min: int = KEEP_MIN) -> tuple[Id, ...]:
    """Return the checkpoints to remove even while there is space: those above `keep_min`."""
    return tuple(order[: max(0, count - keep_min)])


def _of(checkpoints: Iterable[Checkpoint], occasion: Occasion) -> list[Checkpoint]:
    return [checkpoint for checkpoint in checkpoints if checkpoint.occasion is occasion]


def _latest(checkpoints: Sequence[Checkpoint]) -> set[Id]:
    """Return the newest as a set, empty if there is none."""
    newest = sorted(checkpoints, key=lambda one: (one.at_ms, one.id))[-1:]
    return {checkpoint.id for checkpoint in newest}


class ReachableObjects:
    """Mark phase: objects reachable from checkpoints, and their bytes per segment."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.names: set[bytes] = set()
        self.bytes_in: Counter[int] = Counter()

    @property
    def room(self) -> int:
        """Total bytes of all marked objects."""
        return self.bytes_in.total()

    def add(self, name: bytes, tree: bytes) -> dict[bytes, Location]:
        """Mark a checkpoint with all of its objects; return those newly marked."""
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
        """Undo an `add`."""
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
        except (ObjectMissing, ObjectDamaged):
            # Its children are unreachable without it.
            return ()

    def _pieces(self, name: bytes) -> list[bytes]:
        try:
            return names_in(self._objects.get(name)[1])
        except (ObjectMissing, ObjectDamaged):
            return []


_QUOTA_BYTES_MAX = 20 * 10**9
_QUOTA_SHARE = 20  # of the disk
# A segment is copied if so much of it is not needed.
_WORTH_SHARE = 4

Answer = TypeVar("Answer")


class StorageLoad(NamedTuple):
    """Number of checkpoints, stored bytes, and the quota."""

    checkpoints: int
    kept_bytes: int
    quota_bytes: int


class Usage(NamedTuple):
    """Disk usage of a store."""

    checkpoints: int
    kept_bytes: int
    index_bytes: int
    reserve_bytes: int
    free_bytes: int
    quota_bytes: int


class Pruned(NamedTuple):
    """Removed checkpoints, or those a trial would remove; stored bytes before and after."""

    checkpoints: tuple[Id, ...]
    bytes_before: int
    bytes_after: int
    manual_kept: int = 0  # manual checkpoints, kept unless asked for


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
    """Return the disk usage of a store, without reading its contents."""
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
    """Return the figures that decide whether to prune; cheap, as it runs after every operation."""
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
    """Remove old checkpoints and reclaim the space of objects that only they needed.

    Checkpoints beyond `keep_min` are removed by age; below that, only those above the quota.
    Checkpoints in `in_use` are kept, and manual ones unless `with_manual`. A trial changes nothing
    and returns the plan.
    """
    object_store = store.object_store
    before = _bytes(object_store)
    limits = _Limits(quota_bytes, keep_min, in_use, with_manual)
    plan = object_store.read(lambda objects: _plan(objects, limits))
    going = tuple(sorted(plan.going.values()))
    if is_trial:
        return Pruned(going, before, min(before, sum(plan.bytes_in.values())), plan.manual_kept)
    # Durable before any object moves; see the module docstring.
    tombstone = _with_reserve(object_store, lambda objects: _write_tombstone(objects, plan))
    needed = plan.needed if tombstone is None else plan.needed | {tombstone}
    most = before if quota_bytes is None else quota_bytes
    worth = _worth_copying(object_store, plan.bytes_in, is_over=before > most)
    # Copies go to a fresh segment: appending to one that is about to be compacted would copy them
    # twice.
    object_store.segments.renew()
    for count, (is_mostly_needed, _, number) in enumerate(worth, 1):
        if is_mostly_needed and _bytes(object_store) <= most:
            break
        _copy(object_store, number, needed)
        on_progress(WorkProgress("segments tidied", count, len(worth)))
    return Pruned(going, before, _bytes(object_store), plan.manual_kept)


def _plan(objects: Objects, limits: _Limits) -> _Plan:
    """Remove the surplus, then the least valuable checkpoints until the rest fits the quota."""
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
    """Checkpoints that must stay, then removable ones, the last to be removed first."""
    turns = {id: turn for turn, id in enumerate(order)}
    yield from sorted(checkpoints, key=lambda made: -turns.get(made.id, len(turns)))


def _write_tombstone(objects: Objects, plan: _Plan) -> bytes | None:
    """Record removed checkpoints; return the hash of the tombstone object."""
    roster = objects.rows.checkpoints
    roster.prune(plan.going.keys())
    objects.rows.stat_cache.forget_others(plan.needed)
    pruned = roster.pruned()
    return objects.put(ObjectKind.PRUNED, b"".join(pruned)) if pruned else None


def _worth_copying(
    object_store: ObjectStore, bytes_in: dict[int, int], *, is_over: bool
) -> list[tuple[bool, int, int]]:
    """Return segments to compact, those that reclaim space soonest first.

    Above the quota, mostly live segments are included after all others.
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
    """Copy live objects out of a segment, then delete it."""
    _with_reserve(object_store, lambda objects: objects.leave(number, needed))
    segments = object_store.segments
    if number != max(segments.numbers()):
        # The newest stays, so that its number is not reused.
        segments.drop(number)


def _with_reserve(object_store: ObjectStore, work: Callable[[Objects], Answer]) -> Answer:
    """Run a change; on a full disk once more, after `change` has released the reserve."""
    try:
        return object_store.change(work)
    except (DiskFull, DiskQuota):
        return object_store.change(work)


def _bytes(object_store: ObjectStore) -> int:
    return sum(object_store.segments.size(number) for number in object_store.segments.numbers())
