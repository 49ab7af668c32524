"""Make an index agree with the segments, which alone are the truth.

What stands in a segment and not in the index was written by someone who did not live to say so. It
is synced before it counts, and a checkpoint counts only if all that it consists of is there.
"""

from __future__ import annotations

from contextlib import suppress

from holdfast.workbench.core.keeping import decode_checkpoint
from holdfast.workbench.core.record import ObjectSort, names_in
from holdfast.workbench.core.tree import NodeSort
from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.index import Rows
from holdfast.workbench.objects import Objects
from holdfast.workbench.segment_files import Found
from holdfast.workbench.segments import Segments

_NAMING = {ObjectSort.CHECKPOINT, ObjectSort.PRUNED}


def reconcile(segments: Segments, rows: Rows) -> None:
    """Take note of what the segments hold and the index does not, and forget the reverse."""
    seen = rows.seen()
    is_anew = not seen
    numbers = segments.numbers()
    for number in seen.keys() - set(numbers):
        rows.forget_segment(number)
    found: list[Found] = []
    for number in numbers:
        size, start = segments.size(number), seen.get(number, 0)
        if size < start:  # something was cut off that had been there
            rows.forget_segment(number)
            start = 0
        if size > start:
            segments.sync(number)
            found += _take_note(segments, rows, number, start)
            rows.note_seen({number: size})
    objects = Objects(segments, rows)
    for name in (one.name for one in found if one.sort is ObjectSort.PRUNED):
        _take_note_of_pruned(objects, rows, name)
    checkpoints = [one.name for one in found if one.sort is ObjectSort.CHECKPOINT]
    pruned = set(rows.roster.pruned()) if checkpoints else set[bytes]()
    for name in checkpoints:
        if name not in pruned and (is_anew or is_whole(objects, name)):
            _take_note_of_checkpoint(objects, rows, name)


def search(segments: Segments, rows: Rows) -> bool:
    """Take note of all objects that stand in a segment and not in the index; say if there are any.

    Every segment is read from end to end.
    """
    before = rows.count()
    for number in segments.numbers():
        _take_note(segments, rows, number, 0)
    return rows.count() > before


def is_whole(objects: Objects, checkpoint: bytes) -> bool:
    """Whether all that a checkpoint consists of is there; files are not read."""
    try:
        _visit(objects, decode_checkpoint(objects.get(checkpoint)[1]).tree, set())
    except (ObjectMissing, ObjectDamaged, ValueError):
        return False
    return True


def _take_note(segments: Segments, rows: Rows, number: int, start: int) -> list[Found]:
    """Add the objects of a segment from `start` on; return those that name others."""
    found = list(segments.scan(number, start))
    rows.add_objects({name: location for name, _, location in found})
    return [one for one in found if one.sort in _NAMING]


def _take_note_of_pruned(objects: Objects, rows: Rows, name: bytes) -> None:
    with suppress(ObjectDamaged):
        rows.roster.prune(names_in(objects.get(name)[1]))


def _take_note_of_checkpoint(objects: Objects, rows: Rows, name: bytes) -> None:
    with suppress(ObjectDamaged, ValueError):
        rows.roster.add(decode_checkpoint(objects.get(name)[1]).id, name)


def _visit(objects: Objects, tree: bytes, visited: set[bytes]) -> None:
    for node in objects.tree(tree):
        if node.sort not in {NodeSort.FILE, NodeSort.DIRECTORY} or node.object in visited:
            continue
        visited.add(node.object)
        if node.sort is NodeSort.DIRECTORY:
            _visit(objects, node.object, visited)
        elif objects.sort_of(node.object) is ObjectSort.PIECES:
            for piece in names_in(objects.get(node.object)[1]):
                objects.sort_of(piece)
