"""A piece of work is done whole, also if the index is damaged in the middle of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.workbench.failures import ObjectMissing
from holdfast.workbench.objects.formats import ObjectKind
from holdfast.workbench.objects.object_store import ObjectStore, Ports
from holdfast.workbench.objects.objects import Objects
from holdfast.world.failures import DatabaseDamaged


def object_store(home: Path) -> ObjectStore:
    return ObjectStore.open(home, Ports(), patience=0)


@pytest.mark.promise("W8")
def test_an_index_that_turns_out_to_be_damaged_is_made_anew_and_the_work_done_again(
    tmp_path: Path,
) -> None:
    opened = object_store(tmp_path)
    first = opened.change(lambda objects: objects.put(ObjectKind.BLOB, b"first"))
    tries: list[bytes] = []

    def work(objects: Objects) -> bytes:
        tries.append(objects.put(ObjectKind.BLOB, b"second"))
        if len(tries) == 1:
            raise DatabaseDamaged(path="wb.db", reason="somebody wrote into it")
        return tries[-1]

    second = opened.change(work)
    assert [
        opened.read(lambda objects, name=name: objects.get(name)[1]) for name in (first, second)
    ] == [
        b"first",
        b"second",
    ]
    assert len(tries) == 2
    assert len(list(tmp_path.glob("wb.db.damaged-*"))) == 1
    opened.close()


@pytest.mark.promise("W8")
def test_real_damage_is_met_and_mended(tmp_path: Path) -> None:
    opened = object_store(tmp_path)
    names = [
        opened.change(lambda objects, number=number: objects.put(ObjectKind.BLOB, b"%d" % number))
        for number in range(300)
    ]
    opened.close()
    database = tmp_path / "wb.db"
    data = bytearray(database.read_bytes())
    for at in range(4096, len(data), 4096):  # every page but the first
        data[at : at + 200] = bytes(200)
    database.write_bytes(data)

    opened = object_store(tmp_path)
    read = [opened.read(lambda objects, name=name: objects.get(name)[1]) for name in names]
    assert read == [b"%d" % number for number in range(300)]
    opened.close()


@pytest.mark.promise("W8")
@pytest.mark.parametrize("spoil", ["DELETE FROM objects", "UPDATE objects SET offset = offset + 1"])
def test_what_the_index_has_lost_is_found_in_the_segments(spoil: str, tmp_path: Path) -> None:
    opened = object_store(tmp_path)
    name = opened.change(lambda objects: objects.put(ObjectKind.BLOB, b"first"))
    opened.close()
    with closing(sqlite3.connect(tmp_path / "wb.db")) as index, index:
        index.execute(spoil)

    opened = object_store(tmp_path)
    assert opened.read(lambda objects: objects.get(name)[1]) == b"first"
    opened.close()
    opened = object_store(tmp_path)
    assert opened.read(lambda objects: objects.location(name)) is not None
    opened.close()
    assert not list(tmp_path.glob("wb.db.damaged-*"))


def test_what_is_lost_is_searched_for_once(tmp_path: Path) -> None:
    opened, tries = object_store(tmp_path), list[int]()
    opened.change(lambda objects: objects.put(ObjectKind.BLOB, b"first"))

    def work(objects: Objects) -> bytes:
        tries.append(1)
        return objects.get(b"?" * 32)[1]

    for attempt in (opened.read, opened.change):
        with pytest.raises(ObjectMissing):
            attempt(work)
    assert len(tries) == 3
    opened.close()


def test_damage_that_comes_back_is_told(tmp_path: Path) -> None:
    opened = object_store(tmp_path)

    def work(objects: Objects) -> None:
        raise DatabaseDamaged(path="wb.db", reason="always")

    with pytest.raises(DatabaseDamaged):
        opened.change(work)
    with pytest.raises(DatabaseDamaged):
        opened.read(work)
    opened.close()


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    opened = object_store(tmp_path)

    def work(objects: Objects) -> None:
        objects.put(ObjectKind.BLOB, b"half")
        raise ValueError

    with pytest.raises(ValueError):
        opened.change(work)
    assert opened.segments.numbers() == []
    opened.close()
