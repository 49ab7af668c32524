"""What a checkpoint consists of is marked once, with the room that it takes."""

from __future__ import annotations

from pathlib import Path

from holdfast.workbench.objects.formats import ObjectSort, name_of
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.store.pruning import Marking
from holdfast.workbench.store.store import Store, Subject


def test_everything_is_marked_and_the_last_marking_can_be_taken_back(
    tmp_path: Path, project: Path
) -> None:
    (project / "d").mkdir()
    (project / "d" / "small").write_bytes(b"small")
    (project / "d" / "large").write_bytes(bytes(9 * 2**20))
    with Store.open(tmp_path / "store") as store:
        first = store.checkpoint(Subject(project))
        (project / "d" / "small").write_bytes(b"another")
        second = store.checkpoint(Subject(project))
        size = store.vault.segments.size(1)

        def work(objects: Objects) -> None:
            marking = Marking(objects)
            names = dict(objects.rows.roster.all())
            added = marking.add(names[first.id], first.tree)
            assert marking.add(names[first.id], first.tree) == {}
            before = set(marking.names), marking.room
            more = marking.add(names[second.id], second.tree)

            # a checkpoint, two directories, a small file; at first also a large one and its piece
            assert (len(added), len(more)) == (6, 4)
            assert name_of(ObjectSort.BLOB, b"another") in more
            assert (marking.room, dict(marking.bytes_in)) == (size - 16, {1: size - 16})
            marking.take_back(more)
            assert (marking.names, marking.room) == before

        store.vault.read(work)


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:

        def work(objects: Objects) -> None:
            marking = Marking(objects)
            assert marking.add(bytes(32), bytes(32)) == {}
            assert (marking.names, marking.room) == (set(), 0)

        store.vault.read(work)
