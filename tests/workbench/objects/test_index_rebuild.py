"""After a crash the index says what the segments hold."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from holdfast.nouns import make_id
from holdfast.workbench.model import Checkpoint, Occasion
from holdfast.workbench.objects.formats import (
    PREFIX,
    Node,
    NodeKind,
    ObjectKind,
    decode_checkpoint,
    encode_checkpoint,
    name_of,
)
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.index_rebuild import is_whole, reconcile
from holdfast.workbench.objects.objects import Objects, content
from holdfast.workbench.objects.segments import Segments
from holdfast.world.testing import CrashingDisk, SeededRandomSource

ROOT = Path("/store")


def checkpoint(objects: Objects, number: int) -> bytes:
    """Put a checkpoint of one file, and nothing into the index."""
    content = objects.put(ObjectKind.BLOB, Random(number).randbytes(700))
    large = objects.put_pieces([b"piece %d" % number, Random(-number).randbytes(300)])
    tree = objects.put_tree(
        [
            Node(b"f", NodeKind.FILE, 0o644, 700, 1, content),
            Node(b"g", NodeKind.FILE, 0o644, 300, 1, large),
        ]
    )
    made = Checkpoint(
        id=make_id(PREFIX, number, bytes(10)),
        at_ms=number,
        occasion=Occasion.AUTO,
        message="",
        origin="published",
        tree=tree,
        files=2,
        size=1000,
        uncovered=0,
    )
    return objects.put(ObjectKind.CHECKPOINT, encode_checkpoint(made))


def known(index: Index) -> list[bytes]:
    with index.reading() as rows:
        return [name for _, name in rows.checkpoints.all()]


def opened(disk: CrashingDisk) -> Segments:
    return Segments(disk, ROOT, SeededRandomSource(5))


def test_what_is_in_the_segments_only_is_found(index: Index) -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    with index.writing() as rows:
        first = checkpoint(Objects(segments, rows), 1)
        segments.commit()
    with index.writing() as rows:
        reconcile(opened(disk), rows)
    assert known(index) == [first]

    with index.writing() as rows:
        second = checkpoint(Objects(segments, rows), 2)
        segments.commit()
    with index.writing() as rows:
        reconcile(opened(disk), rows)
        assert is_whole(Objects(segments, rows), second)
    assert known(index) == [second, first]


def test_what_is_taken_note_of_is_synced_first(index: Index) -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    with index.writing() as rows:
        objects = Objects(segments, rows)
        name = checkpoint(objects, 1)
        objects.get(name)  # it is on the disk now, and not durable
        reconcile(opened(disk), rows)

    assert known(index) == [name]
    for seed in range(20):
        found = [found.name for found in opened(disk.crash(seed)).scan(1, 0)]
        assert found[-1] == name


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.promise("W3")
def test_a_checkpoint_counts_only_if_it_is_whole(index: Index, seed: int) -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    with index.writing() as rows:
        objects = Objects(segments, rows)
        first = checkpoint(objects, 1)
        objects.commit()
        reconcile(segments, rows)
        rows.checkpoints.add(make_id(PREFIX, 1, bytes(10)), first)
    with index.writing() as rows:
        unfinished = Objects(segments, rows)
        second = checkpoint(unfinished, 2)
        unfinished.get(second)  # written, and not synced, when the power fails
    after = opened(disk.crash(seed))
    with index.writing() as rows:
        reconcile(after, rows)

    assert known(index) in ([first], [second, first])
    with index.reading() as rows:
        objects = Objects(after, rows)
        for name in known_trees(objects, known_names=[name for _, name in rows.checkpoints.all()]):
            assert b"".join(content(name, objects.get))


def test_what_was_cut_off_or_removed_is_forgotten(index: Index) -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    with index.writing() as rows:
        objects = Objects(segments, rows)
        kept = objects.put(ObjectKind.BLOB, b"kept")
        objects.commit()
        size = segments.size(1)
        cut = objects.put(ObjectKind.BLOB, b"cut off")
        objects.commit()
        rows.note_seen({9: 100})
    disk.open_to_write(ROOT / "000001.seg").truncate(size)
    with index.writing() as rows:
        reconcile(opened(disk), rows)

        assert rows.find(kept) is not None
        assert rows.find(cut) is None
        assert rows.seen() == {1: size}


def test_an_index_made_anew_lists_also_what_is_spoiled(index: Index) -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    with index.writing() as rows:
        data = encode_checkpoint(
            Checkpoint(
                id=make_id(PREFIX, 1, bytes(10)),
                at_ms=1,
                occasion=Occasion.AUTO,
                message="",
                origin="published",
                tree=bytes(32),
                files=0,
                size=0,
                uncovered=0,
            )
        )
        name = name_of(ObjectKind.CHECKPOINT, data)
        segments.append(ObjectKind.CHECKPOINT, name, data)
        segments.commit()
        reconcile(opened(disk), rows)
        assert not is_whole(Objects(segments, rows), name)

    assert known(index) == [name]


def known_trees(objects: Objects, known_names: list[bytes]) -> list[bytes]:
    """The files of all checkpoints."""
    trees = [decode_checkpoint(objects.get(name)[1]).tree for name in known_names]
    return [node.object for tree in trees for node in objects.tree(tree)]
