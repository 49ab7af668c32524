"""What a checkpoint consists of is marked once, with the room that it takes."""

from __future__ import annotations

from pathlib import Path

from holdfast.workbench.objects.formats import ObjectKind, name_of
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.store.pruning import ReachableObjects
from holdfast.workbench.store.store import CheckpointSource, Store


def test_everything_is_marked_and_the_last_marking_can_be_taken_back(
    tmp_path: Path, project: Path
) -> None:
    (project / "d").mkdir()
    (project / "d" / "small").write_bytes(b"small")
    (project / "d" / "large").write_bytes(bytes(9 * 2**20))
    with Store.open(tmp_path / "store") as store:
        first = store.checkpoint(CheckpointSource(project))
        (project / "d" / "small").write_bytes(b"another")
        second = store.checkpoint(CheckpointSource(project))
        size = store.object_store.segments.size(1)

        def work(objects: Objects) -> None:
            marking = ReachableObjects(objects)
            names = dict(objects.rows.checkpoints.all())
            added = marking.add(names[first.id], first.tree)
            assert marking.add(names[first.id], first.tree) == {}
            before = set(marking.names), marking.room
            more = marking.add(names[second.id], second.tree)

            # a checkpoint, two directories, a small file; at first also a large one and its piece
            assert (len(added), len(more)) == (6, 4)
            assert name_of(ObjectKind.BLOB, b"another") in more
            assert (marking.room, dict(marking.bytes_in)) == (size - 16, {1: size - 16})
            marking.unmark(more)
            assert (marking.names, marking.room) == before

        store.object_store.read(work)


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:

        def work(objects: Objects) -> None:
            marking = ReachableObjects(objects)
            assert marking.add(bytes(32), bytes(32)) == {}
            assert (marking.names, marking.room) == (set(), 0)

        store.object_store.read(work)
