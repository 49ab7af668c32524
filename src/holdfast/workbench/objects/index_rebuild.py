"""Make an index agree with the segments, which alone are the truth.

What stands in a segment and not in the index was written by someone who did not live to say so. It
is synced before it counts, and a checkpoint counts only if all that it consists of is there.
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
    """Take note of what the segments hold and the index does not, and forget the reverse."""
    seen = rows.seen()
    is_rebuilt = not seen
    numbers = segments.numbers()
    for number in seen.keys() - set(numbers):
        rows.forget_segment(number)
    found: list[ScannedObject] = []
    for number in numbers:
        size, start = segments.size(number), seen.get(number, 0)
        if size < start:  # something was cut off that had been there
            rows.forget_segment(number)
            start = 0
        if size > start:
            segments.sync(number)
            found += _take_note(rows, list(segments.scan(number, start)))
            rows.note_seen({number: size})
    if found:
        _count(Objects(segments, rows), found, is_rebuilt=is_rebuilt)


def search(segments: Segments, rows: IndexTransaction) -> None:
    """Take note again of all that stands in the segments, whatever the index said of it.

    Every segment is read from end to end. What was seen of directories is kept.
    """
    rows.checkpoints.clear()
    rows.forget_all_objects()
    found: list[ScannedObject] = []
    for number in segments.numbers():
        found += _take_note(rows, list(segments.scan(number, 0)))
    _count(Objects(segments, rows), found, is_rebuilt=True)


def is_whole(objects: Objects, checkpoint: bytes) -> bool:
    """Whether all that a checkpoint consists of is there; files are not read."""
    try:
        _visit(objects, decode_checkpoint(objects.get(checkpoint)[1]).tree, set())
    except (ObjectMissing, ObjectDamaged, ValueError):
        return False
    return True


def _take_note(rows: IndexTransaction, found: list[ScannedObject]) -> list[ScannedObject]:
    """Add objects that stand in a segment; return those that name others."""
    rows.add_objects({name: location for name, _, location in found})
    return [one for one in found if one.kind in _NAMING]


def _count(objects: Objects, found: Collection[ScannedObject], *, is_rebuilt: bool) -> None:
    """Let the checkpoints count that were found, but for those that were pruned."""
    rows = objects.rows
    for name in (one.name for one in found if one.kind is ObjectKind.PRUNED):
        _take_note_of_pruned(objects, rows, name)
    pruned = set(rows.checkpoints.pruned())
    for name in (one.name for one in found if one.kind is ObjectKind.CHECKPOINT):
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
