"""An object is kept once, and comes back as it was."""

from __future__ import annotations

from typing import NoReturn

import pytest

from holdfast.workbench.failures import ObjectDamaged, ObjectMissing
from holdfast.workbench.model import WorkProgress
from holdfast.workbench.objects.formats import Node, NodeKind, ObjectKind
from holdfast.workbench.objects.index import Index
from holdfast.workbench.objects.objects import ObjectCache, Objects, content
from holdfast.workbench.objects.segments import Segments

NODE = Node(b"a", NodeKind.LINK, 0o777, 0, 1, b"target")


def _refuse(*_: object) -> NoReturn:
    pytest.fail("it was read again")


def test_the_same_bytes_are_kept_once(segments: Segments, index: Index) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        name = objects.put(ObjectKind.BLOB, b"data")
        objects.commit()
    size = segments.size(1)
    with index.writing() as rows:
        again = Objects(segments, rows)
        assert again.put(ObjectKind.BLOB, b"data") == name
        assert again.put(ObjectKind.BLOB, b"more") == again.put(ObjectKind.BLOB, b"more")
        again.commit()
        assert again.get(name) == (ObjectKind.BLOB, b"data")

    assert segments.size(1) == size + 64 + 4


def test_pieces_make_one_content(segments: Segments, index: Index) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        large = objects.put_pieces([b"one", b"two", b"one"])
        small = objects.put(ObjectKind.BLOB, b"all at once")
        objects.commit()
    with index.reading() as rows:
        objects = Objects(segments, rows)
        assert list(content(large, objects.get)) == [b"one", b"two", b"one"]
        assert list(content(small, objects.get)) == [b"all at once"]
        assert objects.kind_of(large) is ObjectKind.PIECES


def test_many_come_in_order_also_those_that_were_just_put(segments: Segments, index: Index) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        names = [objects.put(ObjectKind.BLOB, b"%d" % number) for number in range(3)]
        objects.commit()
    with index.writing() as rows:
        objects = Objects(segments, rows)
        names.insert(1, objects.put(ObjectKind.TREE, b"new"))

        assert [data for _, _, data in objects.each(names)] == [b"0", b"new", b"1", b"2"]
        objects.damaged.add(names[-1])
        with pytest.raises(ObjectMissing):
            list(objects.each(names))


def test_small_files_are_put_together_before_the_checkpoint_that_has_them(
    segments: Segments, index: Index
) -> None:
    small = [b"%d and what they have in common" % number * 9 for number in range(500)]
    with index.writing() as rows:
        objects = Objects(segments, rows)
        names = [objects.put(ObjectKind.BLOB, data) for data in small + small]
        assert objects.get(names[7]) == (ObjectKind.BLOB, small[7])
        checkpoint = objects.put(ObjectKind.CHECKPOINT, b"the checkpoint")
        objects.commit()
    found = list(segments.scan(1, 0))

    assert [one.name for one in found] == [*names[:500], checkpoint]
    offsets = {one.location.offset for one in found[:-1]}
    assert len(offsets) == 2  # a full one, and the rest
    assert sum(one.location.room for one in found) == segments.size(1) - 16
    with index.reading() as rows:
        objects = Objects(segments, rows)
        assert [data for _, _, data in objects.each(names)] == small + small
        assert [objects.location(one.name) for one in found] == [one.location for one in found]


def test_of_what_was_put_together_only_what_is_needed_is_put_again(
    segments: Segments, index: Index
) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        names = [objects.put(ObjectKind.BLOB, b"%d" % number * 500) for number in range(9)]
        large = objects.put(ObjectKind.BLOB, bytes(20_000))
        objects.commit()
        whole = [objects.put(ObjectKind.BLOB, b"%d" % number * 400) for number in range(9)]
        objects.commit()
        shares = [location.room for name, location in rows.objects_in(1) if name in whole]
    segments.renew()
    with index.writing() as rows:
        objects = Objects(segments, rows)
        objects.leave(1, {names[3], names[5], large, *whole})
        objects.commit()

        assert rows.seen() == {2: segments.size(2)}
        there = dict(rows.objects_in(2))
        assert there.keys() == {names[3], names[5], large, *whole}
        assert sorted(there[name].room for name in whole) == sorted(shares)
        assert sum(location.room for location in there.values()) == segments.size(2) - 16
        assert objects.get(names[5]) == (ObjectKind.BLOB, b"5" * 500)
        assert objects.get(whole[8]) == (ObjectKind.BLOB, b"8" * 400)
        assert objects.location(names[4]) is None


def test_a_large_file_tells_how_far_it_has_come(segments: Segments, index: Index) -> None:
    on_progress: list[WorkProgress] = []
    with index.writing() as rows:
        objects = Objects(segments, rows)
        objects.on_progress = on_progress.append
        objects.put_pieces(b"%d" % number for number in range(70))

    assert on_progress == [WorkProgress("MiB of a large file", done) for done in (32, 64)]


def test_a_crafted_file_does_not_pass_for_a_list_of_pieces(
    segments: Segments, index: Index
) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        large = objects.put_pieces([b"one", b"two"])
        crafted = objects.get(large)[1]
        name = objects.put(ObjectKind.BLOB, crafted)

        assert list(content(name, objects.get)) == [crafted]
        assert list(content(large, objects.get)) == [b"one", b"two"]


def test_directories_come_back_or_say_what_is_wrong(segments: Segments, index: Index) -> None:
    with index.writing() as rows:
        objects = Objects(segments, rows)
        name = objects.put_tree([NODE])
        assert objects.tree(name) == (NODE,)

        unfit = objects.put(ObjectKind.TREE, b"\7")
        with pytest.raises(ObjectDamaged, match="form") as damaged:
            objects.tree(unfit)
        assert damaged.value.object == unfit.hex()


def test_a_directory_is_read_once_as_long_as_it_is_there(
    segments: Segments, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = ObjectCache()
    with index.writing() as rows:
        objects = Objects(segments, rows, cache=remembered)
        name = objects.put_tree([NODE])
        objects.commit()
        found = objects.tree(name)
    with index.reading() as rows, monkeypatch.context() as patch:
        patch.setattr(segments, "read", _refuse)
        assert Objects(segments, rows, cache=remembered).tree(name) is found
        with pytest.raises(ObjectMissing):
            Objects(segments, rows, {name}, remembered).tree(name)
    with index.writing() as rows:
        rows.forget_objects([name])
        with pytest.raises(ObjectMissing):
            Objects(segments, rows, cache=remembered).tree(name)


def test_not_everything_is_remembered() -> None:
    remembered = ObjectCache()
    remembered.add(b"small", (NODE,))
    remembered.add(b"large", (NODE,) * 19_990)
    assert (remembered.get(b"small"), remembered.get(b"other")) == ((NODE,), None)

    remembered.add(b"next", (NODE,) * 10)
    assert (remembered.get(b"small"), remembered.get(b"large")) == (None, None)
    assert remembered.get(b"next") == (NODE,) * 10


def test_what_is_not_there_is_named(segments: Segments, index: Index) -> None:
    with index.reading() as rows:
        objects = Objects(segments, rows)
        for ask in (objects.get, objects.kind_of):
            with pytest.raises(ObjectMissing) as missing:
                ask(b"\1" * 32)
            assert missing.value == ObjectMissing(object="01" * 32)
