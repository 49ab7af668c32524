"""The index finds what was noted, and a spoiled one is set aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench.objects.formats import Totals
from holdfast.workbench.objects.index import SCHEMA, DirectoryRecord, Index
from holdfast.workbench.objects.segments import Location
from holdfast.world import Database, Schema, SystemDisk

NAME, OTHER = b"n" * 32, b"o" * 32
KNOWN = DirectoryRecord(NAME, Totals(1, 2, 3), b"sight", is_racy=False)


def test_objects_are_found_where_they_were_first(index: Index) -> None:
    with index.writing() as rows:
        rows.add_objects({NAME: Location(1, 16, 5, 69)})
        rows.add_objects({NAME: Location(2, 16, 5, 69), OTHER: Location(2, 90, 7, 69)})

    with index.reading() as rows:
        assert rows.find(NAME) == Location(1, 16, 5, 69)
        assert rows.find(OTHER) == Location(2, 90, 7, 69)
        assert rows.find(b"x" * 32) is None
        assert rows.find_all([]) == {}
        assert rows.names_at(Location(2, 90, 0, 0)) == [OTHER]


@pytest.mark.parametrize("count", [1, 99, 100, 101, 250])
def test_many_objects_are_found_at_once(index: Index, count: int) -> None:
    there = {b"%032d" % number: Location(1, number, 5, 69) for number in range(count)}
    with index.writing() as rows:
        rows.add_objects(there)

        assert rows.find_all([NAME, *there, OTHER]) == there


def test_an_index_from_before_objects_shared_records_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    before = Database.open(path, Schema(SCHEMA.name, 3, SCHEMA.upgrades[:3]), is_derived=True)
    with before.transaction() as transaction:
        transaction.execute("INSERT INTO objects VALUES (?, 1, 16, 5)", (NAME,))
    before.close()
    index = Index.open(path, SystemDisk())
    with index.reading() as rows:
        assert rows.find(NAME) == Location(1, 16, 5, 64 + 5)
    index.close()
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_lost_segment_takes_its_objects_and_every_sight_along(index: Index) -> None:
    with index.writing() as rows:
        rows.add_objects({NAME: Location(1, 16, 5, 69), OTHER: Location(2, 16, 7, 69)})
        rows.note_seen({1: 80, 2: 90})
        rows.stat_cache.note("origin", [(b"", KNOWN)])
        rows.forget_segment(1)

        assert rows.find(NAME) is None
        assert rows.find(OTHER) == Location(2, 16, 7, 69)
        assert rows.seen() == {2: 90}
        assert rows.stat_cache.known("origin", b"") is None


@pytest.mark.promise("W8")
@pytest.mark.parametrize("damage", [b"no database at all", b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_cannot_be_read_is_set_aside_and_kept(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "wb.db"
    path.write_bytes(damage)

    index = Index.open(path, SystemDisk())
    with index.writing() as rows:
        assert rows.seen() == {}
    index.close()
    aside = [file for file in tmp_path.iterdir() if ".damaged-" in file.name]
    assert [file.read_bytes() for file in aside] == [damage]


def test_an_index_whose_tables_are_not_as_we_wrote_them_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "wb.db"
    Index.open(path, SystemDisk()).close()
    Index.open(path, SystemDisk()).close()
    assert not list(tmp_path.glob("*.damaged-*"))

    path.write_bytes(path.read_bytes().replace(b"stored_bytes INTEGER", b"stored_bytfs INTEGER"))
    index = Index.open(path, SystemDisk())
    with index.reading() as rows:
        assert rows.find(bytes(32)) is None
    index.close()
    assert list(tmp_path.glob("wb.db.damaged-*"))
