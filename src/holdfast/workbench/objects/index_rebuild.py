"""Reconcile the index with the segments, which are the source of truth.

A record that is in a segment but not in the index was written by a process that died before its
index transaction committed. The segment is synced before the record is indexed, and a checkpoint is
accepted only if all of its objects exist.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.objects.formats import NodeKind, ObjectKind, decode_checkpoint, names_in
from holdfast.workbench.objects.index import IndexTransaction
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.objects.segments import ScannedObject, Segments

_NAMING = {ObjectKind.CHECKPOINT, ObjectKind.PRUNED}


def reconcile(segments: Segments, rows: IndexTransaction) -> None:
    """Index records that are new in the segments.

    Drop rows of segments that are gone or shorter.
    """
    seen = rows.seen()
    is_rebuilt = not seen
    numbers = segments.numbers()
    for number in seen.keys() - set(numbers):
        rows.forget_segment(number)
    found: list[ScannedObject] = []
    for number in numbers:
        size, start = segments.size(number), seen.get(number, 0)
        if size < start:
            # Truncated behind our back: rescan it.
            rows.forget_segment(number)
            start = 0
        if size > start:
            # The writer may have died between write and fsync; an index row must never outlive its
            # record.
            segments.sync(number)
            found += _take_note(rows, list(segments.scan(number, start)))
            rows.note_seen({number: size})
    if found:
        _count(Objects(segments, rows), found, is_rebuilt=is_rebuilt)


def search(segments: Segments, rows: IndexTransaction) -> None:
    """Rebuild object and checkpoint rows by a full scan of every segment.

    The stat cache is kept.
    """
    rows.checkpoints.clear()
    rows.forget_all_objects()
    found: list[ScannedObject] = []
    for number in segments.numbers():
        found += _take_note(rows, list(segments.scan(number, 0)))
    _count(Objects(segments, rows), found, is_rebuilt=True)


def is_whole(objects: Objects, checkpoint: bytes) -> bool:
    """Whether all objects of a checkpoint exist; file contents are not read."""
    try:
        _visit(objects, decode_checkpoint(objects.get(checkpoint)[1]).tree, set())
    except (ObjectMissing, ObjectDamaged, ValueError):
        return False
    return True


def _take_note(rows: IndexTransaction, found: list[ScannedObject]) -> list[ScannedObject]:
    """Index objects; return checkpoints and tombstones among them."""
    rows.add_objects({name: location for name, _, location in found})
    return [one for one in found if one.kind in _NAMING]


def _count(objects: Objects, found: Collection[ScannedObject], *, is_rebuilt: bool) -> None:
    """Add found checkpoints, except pruned ones."""
    rows = objects.rows
    for name in (one.name for one in found if one.kind is ObjectKind.PRUNED):
        _take_note_of_pruned(objects, rows, name)
    pruned = set(rows.checkpoints.pruned())
    for name in (one.name for one in found if one.kind is ObjectKind.CHECKPOINT):
        # Verified only one by one: in a full rebuild the walk over every tree would cost more than
        # a later failure of one damaged checkpoint.
        if name not in pruned and (is_rebuilt or is_whole(objects, name)):
            _take_note_of_checkpoint(objects, rows, name)


def _take_note_of_pruned(objects: Objects, rows: IndexTransaction, name: bytes) -> None:
    with suppress(ObjectDamaged):
        rows.checkpoints.prune(names_in(objects.get(name)[1]))


def _take_note_of_checkpoint(objects: Objects, rows: IndexTransaction, name: bytes) -> None:
    with suppress(ObjectDamaged, ValueError):
        rows.checkpoints.add(decode_checkpoint(objects.get(name)[1]).id, name)


def _visit(objects: Objects, tree: bytes, visited: set[bytes]) -> None:
    for node in objects.tree(tree):
        if node.kind not in {NodeKind.FILE, NodeKind.DIRECTORY} or node.object in visited:
            continue
        visited.add(node.object)
        if node.kind is NodeKind.DIRECTORY:
            _visit(objects, node.object, visited)
        elif objects.kind_of(node.object) is ObjectKind.PIECES:
            for piece in names_in(objects.get(node.object)[1]):
                objects.kind_of(piece)
