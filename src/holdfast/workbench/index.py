"""Where every object is, which checkpoints there are, and what was seen of each directory.

All of it can be made anew from the segments, except the sights, without which the next checkpoint
merely reads more. So a damaged index is set aside, and never a reason to lose anything.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Final

from holdfast.workbench.core.record import HEAD_BYTES
from holdfast.workbench.roster import Roster
from holdfast.workbench.segment_files import Location
from holdfast.workbench.sights import Sights
from holdfast.world import Database, Disk, Schema, Transaction, Upgrade
from holdfast.world.failures import DatabaseDamaged, DiskMissing, StoreForeign

_TOGETHER: Final = 100
_FIND_ALL: Final = (
    "SELECT name, segment, offset, stored_bytes, room FROM objects"
    f" WHERE name IN ({', '.join('?' * _TOGETHER)})"
)


class Rows:
    """The index within one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._is_empty: bool | None = None
        self.sights = Sights(transaction)
        self.roster = Roster(transaction)

    def find(self, name: bytes) -> Location | None:
        """Where an object is; None if there is none of this name."""
        if self._is_empty:
            return None
        row = self._transaction.execute(
            "SELECT segment, offset, stored_bytes, room FROM objects WHERE name = ?", (name,)
        ).fetchone()
        if row is not None:
            return Location(*row)
        if self._is_empty is None:  # a first checkpoint need not ask for each of its files
            found = self._transaction.execute("SELECT 1 FROM objects LIMIT 1").fetchone()
            self._is_empty = found is None
        return None

    def find_all(self, names: Sequence[bytes]) -> dict[bytes, Location]:
        """Where those of the objects are that are there; a few questions for any number."""
        found: dict[bytes, Location] = {}
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            # Always as many, so that it is one statement, which is compiled once.
            asked = (*some, *repeat(some[-1], _TOGETHER - len(some)))
            rows = self._transaction.execute(_FIND_ALL, asked)
            found.update((name, Location(*location)) for name, *location in rows)
        return found

    def add_objects(self, objects: Mapping[bytes, Location]) -> None:
        """Take note of where objects are; of two copies of one the first counts."""
        self._is_empty = None
        self._transaction.execute_many(
            "INSERT OR IGNORE INTO objects VALUES (?, ?, ?, ?, ?)",
            # In order, so that page after page is filled instead of many at once.
            sorted((name, *location) for name, location in objects.items()),
        )

    def seen(self) -> dict[int, int]:
        """How far each segment has been taken note of."""
        return dict(self._transaction.execute("SELECT number, seen FROM segments").fetchall())

    def note_seen(self, seen: Mapping[int, int]) -> None:
        """Say how far segments have been taken note of."""
        self._transaction.execute_many(
            "INSERT OR REPLACE INTO segments VALUES (?, ?)", seen.items()
        )

    def forget_segment(self, number: int) -> None:
        """Drop all that is known of a segment, and every sight, as it may rest on what is lost."""
        self._transaction.execute("DELETE FROM objects WHERE segment = ?", (number,))
        self._transaction.execute("DELETE FROM segments WHERE number = ?", (number,))
        self.sights.forget_all()

    def forget_objects(self, names: Iterable[bytes]) -> None:
        """Drop what is known of objects that turned out to be spoiled."""
        self._transaction.execute_many(
            "DELETE FROM objects WHERE name = ?", ((name,) for name in names)
        )

    def forget_all_objects(self) -> None:
        """Forget where every object is; what is spoiled in the table itself goes along."""
        self._is_empty = None
        self._transaction.execute("DELETE FROM objects")

    def objects_in(self, number: int) -> list[tuple[bytes, Location]]:
        """Every object of which the copy in this segment counts, in the order of their places."""
        rows = self._transaction.execute(
            "SELECT name, segment, offset, stored_bytes, room FROM objects WHERE segment = ?"
            " ORDER BY offset",
            (number,),
        )
        return [(name, Location(*location)) for name, *location in rows]

    def names_at(self, location: Location) -> list[bytes]:
        """Every object that is in the same record; all are looked through for that."""
        rows = self._transaction.execute(
            "SELECT name FROM objects WHERE segment = ? AND offset = ?", location[:2]
        )
        return [row[0] for row in rows]

    def leave(self, number: int) -> None:
        """Forget a segment of which all that is needed has been put elsewhere."""
        self._is_empty = None
        self._transaction.execute("DELETE FROM objects WHERE segment = ?", (number,))
        self._transaction.execute("DELETE FROM segments WHERE number = ?", (number,))


class Index:
    """The index of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Index:
        """Open or make the index; one that cannot be read is set aside, and made anew, empty."""
        try:
            database = Database.open(path, SCHEMA, is_derived=True)
        except (DatabaseDamaged, StoreForeign):
            return cls.anew(path, disk)
        if _is_ours(database):
            return cls(database)
        database.close()
        return cls.anew(path, disk)

    @classmethod
    def anew(cls, path: Path, disk: Disk) -> Index:
        """Set an index aside that is not fit for use, and make an empty one."""
        _set_aside(path, disk)
        return cls(Database.open(path, SCHEMA, is_derived=True))

    @contextmanager
    def reading(self) -> Generator[Rows]:
        """Read one moment of it."""
        with self._database.snapshot() as transaction:
            yield Rows(transaction)

    @contextmanager
    def writing(self) -> Generator[Rows]:
        """Change it, all or nothing."""
        with self._database.transaction() as transaction:
            yield Rows(transaction)

    def close(self) -> None:
        """Let go of it."""
        self._database.close()


def _set_aside(path: Path, disk: Disk) -> None:
    word = disk.fresh_word()
    for ending in ("", "-wal", "-shm"):
        old = path.with_name(path.name + ending)
        try:
            disk.rename(old, path.with_name(f"{path.name}{ending}.damaged-{word}"))
        except DiskMissing:
            assert ending, f"{path} cannot be damaged and missing"
    disk.sync_directory(path.parent)


_OBJECTS_ALONE = (
    "CREATE TABLE objects (name BLOB PRIMARY KEY, segment INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, stored_bytes INTEGER NOT NULL) WITHOUT ROWID"
)
_OBJECTS = (
    "CREATE TABLE objects (name BLOB PRIMARY KEY, segment INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, room INTEGER NOT NULL) WITHOUT ROWID"
)
_OTHERS = (
    "CREATE TABLE segments (number INTEGER PRIMARY KEY, seen INTEGER NOT NULL)",
    "CREATE TABLE checkpoints (id TEXT PRIMARY KEY, name BLOB NOT NULL)",
    "CREATE TABLE sights (origin TEXT, directory BLOB, tree BLOB NOT NULL,"
    " files INTEGER NOT NULL, size INTEGER NOT NULL, uncovered INTEGER NOT NULL,"
    " sight BLOB NOT NULL, is_racy INTEGER NOT NULL, PRIMARY KEY (origin, directory))",
    "CREATE INDEX racy ON sights (origin) WHERE is_racy",
)
_PRUNED = "CREATE TABLE pruned (name BLOB PRIMARY KEY) WITHOUT ROWID"


def _is_ours(database: Database) -> bool:
    """Whether what is written of the tables is, to the letter, what we wrote."""
    with database.snapshot() as transaction:
        rows = transaction.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {row[0] for row in rows} == {_OBJECTS, *_OTHERS, _PRUNED}


def _create(transaction: Transaction) -> None:
    for statement in (_OBJECTS_ALONE, *_OTHERS):
        transaction.execute(statement)


def _add_pruned(transaction: Transaction) -> None:
    transaction.execute(_PRUNED)


def _forget_sights(transaction: Transaction) -> None:
    """Those that were written in another form; the next look sees everything anew."""
    transaction.execute("DELETE FROM sights")


def _add_room(transaction: Transaction) -> None:
    """Up to then every object had a record to itself."""
    transaction.execute("ALTER TABLE objects RENAME TO alone")
    transaction.execute(_OBJECTS)
    transaction.execute(
        f"INSERT INTO objects SELECT *, stored_bytes + {HEAD_BYTES} FROM alone ORDER BY name"
    )
    transaction.execute("DROP TABLE alone")


SCHEMA: Schema[Upgrade] = Schema(
    "workbench index", 4, (_create, _add_pruned, _forget_sights, _add_room)
)
