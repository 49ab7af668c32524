"""Where every object is, which checkpoints there are, and what was seen of each directory.

All of it can be made anew from the segments, except the sights, without which the next checkpoint
merely reads more. So a damaged index is set aside, and never a reason to lose anything.

What was seen of each directory when it was last looked at.

Of every origin there are sights of its own. Without them the next look merely reads more.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.workbench.objects.formats import HEADER_BYTES, Totals
from holdfast.workbench.objects.segments import Location
from holdfast.world import Database, Disk, Schema, Transaction, Upgrade
from holdfast.world.failures import DatabaseDamaged, DiskMissing, StoreForeign

# Which checkpoints there are, and which of those that stand in a segment count no more.


class CheckpointTable:
    """All checkpoints, within one transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, id: str, name: bytes) -> None:
        """Take note of which object a checkpoint is."""
        self._transaction.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (id, name))

    def find(self, id: str) -> bytes | None:
        """Which object a checkpoint is; None if there is none of this id."""
        row = self._transaction.execute(
            "SELECT name FROM checkpoints WHERE id = ?", (id,)
        ).fetchone()
        return None if row is None else row[0]

    def all(self) -> list[tuple[str, bytes]]:
        """The id and the object of every checkpoint, the newest first."""
        return self.newest(-1)

    def newest(self, most: int) -> list[tuple[str, bytes]]:
        """The same of the newest ones; costs no more than so many."""
        return self._transaction.execute(
            "SELECT id, name FROM checkpoints ORDER BY id DESC LIMIT ?", (most,)
        ).fetchall()

    def count(self) -> int:
        """How many checkpoints there are."""
        count: int = self._transaction.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
        return count

    def clear(self) -> None:
        """Forget which checkpoints there are, for whoever finds out anew."""
        self._transaction.execute("DELETE FROM checkpoints")

    def prune(self, names: Collection[bytes]) -> None:
        """Let these checkpoints count no more, even if they are found in a segment."""
        rows = [(name,) for name in names]
        self._transaction.execute_many("DELETE FROM checkpoints WHERE name = ?", rows)
        self._transaction.execute_many("INSERT OR IGNORE INTO pruned VALUES (?)", rows)

    def pruned(self) -> list[bytes]:
        """The checkpoints that count no more and still stand in a segment, sorted."""
        self._transaction.execute("DELETE FROM pruned WHERE name NOT IN (SELECT name FROM objects)")
        rows = self._transaction.execute("SELECT name FROM pruned ORDER BY name")
        return [row[0] for row in rows]


class DirectoryRecord(NamedTuple):
    """What a directory was when it was last looked at."""

    tree: bytes
    totals: Totals
    stats: bytes
    is_racy: bool


# Where the file is spoiled, a value can come back as one of another sort: bytes stay bytes here.
_TREE, _SIGHT = "ifnull(CAST(tree AS BLOB), x'')", "ifnull(CAST(sight AS BLOB), x'')"
_KNOWN = f"{_TREE}, files, size, uncovered, {_SIGHT}, is_racy"


def _known(  # the columns, as they come
    tree: bytes, files: int, size: int, uncovered: int, stats: bytes, is_racy: int
) -> DirectoryRecord:
    return DirectoryRecord(tree, Totals(files, size, uncovered), stats, bool(is_racy))


_LAYOUT = "layout"


class StatCache:
    """What is known of directories, within one transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def known(self, origin: str, directory: bytes) -> DirectoryRecord | None:
        """What a directory of an origin was; None if it was never looked at."""
        row = self._transaction.execute(
            f"SELECT {_KNOWN} FROM sights WHERE origin = ? AND directory = ?", (origin, directory)
        ).fetchone()
        return None if row is None else _known(*row)

    def all(self, origin: str) -> dict[bytes, DirectoryRecord]:
        """What every directory of an origin was: cheaper than to ask for each of them."""
        rows = self._transaction.execute(
            f"SELECT directory, {_KNOWN} FROM sights WHERE origin = ?", (origin,)
        )
        return {directory: _known(*row) for directory, *row in rows}

    def reliable(self, origin: str) -> list[tuple[bytes, bytes]]:
        """Every directory of an origin of which all is known for sure, with its sight."""
        return self._transaction.execute(
            f"SELECT directory, {_SIGHT} FROM sights WHERE origin = ? AND NOT is_racy", (origin,)
        ).fetchall()

    def note(self, origin: str, looked: Iterable[tuple[bytes, DirectoryRecord]]) -> None:
        """Say what directories of an origin are."""
        self._transaction.execute_many(
            "INSERT OR REPLACE INTO sights VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (origin, directory, known.tree, *known.totals, known.stats, known.is_racy)
                for directory, known in looked
            ),
        )

    def layout(self, origin: str) -> bytes:
        """A token that changes when a directory became another one; empty if nothing is known."""
        known = self.known(f"{_LAYOUT} {origin}", b"")
        return b"" if known is None else known.stats

    def note_layout(self, origin: str, token: bytes) -> None:
        """Replace the token of an origin."""
        self.note(
            f"{_LAYOUT} {origin}",
            [(b"", DirectoryRecord(b"", Totals(0, 0, 0), token, is_racy=False))],
        )

    def forget(self, origin: str, directory: bytes) -> None:
        """Drop what is known of a directory of an origin and of all below it."""
        self._transaction.execute(
            "DELETE FROM sights WHERE origin = ? AND"
            " (directory = ? OR (directory >= ? AND directory < ?))",
            (origin, directory, directory + b"/", directory + b"0"),  # 0 is what follows a slash
        )

    def racy(self, origin: str) -> list[bytes]:
        """The directories of an origin that must be looked at again in any case."""
        rows = self._transaction.execute(
            "SELECT directory FROM sights WHERE origin = ? AND is_racy", (origin,)
        )
        return [row[0] for row in rows]

    def forget_all(self) -> None:
        """Drop every sight, because it may rest on something that is lost."""
        self._transaction.execute("DELETE FROM sights")

    def forget_others(self, trees: Collection[bytes]) -> None:
        """Drop every sight of a directory that is none of these."""
        seen = self._transaction.execute("SELECT origin, directory, tree FROM sights").fetchall()
        self._transaction.execute_many(
            "DELETE FROM sights WHERE origin = ? AND directory = ?",
            ((origin, directory) for origin, directory, tree in seen if tree not in trees),
        )


_TOGETHER: Final = 100
_FIND_ALL: Final = (
    "SELECT name, segment, offset, stored_bytes, room FROM objects"
    f" WHERE name IN ({', '.join('?' * _TOGETHER)})"
)


class IndexTransaction:
    """The index within one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._is_empty: bool | None = None
        self.stat_cache = StatCache(transaction)
        self.checkpoints = CheckpointTable(transaction)

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
        self.stat_cache.forget_all()

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
            return cls.recreate(path, disk)
        if _is_ours(database):
            return cls(database)
        database.close()
        return cls.recreate(path, disk)

    @classmethod
    def recreate(cls, path: Path, disk: Disk) -> Index:
        """Set an index aside that is not fit for use, and make an empty one."""
        _set_aside(path, disk)
        return cls(Database.open(path, SCHEMA, is_derived=True))

    @contextmanager
    def reading(self) -> Generator[IndexTransaction]:
        """Read one moment of it."""
        with self._database.snapshot() as transaction:
            yield IndexTransaction(transaction)

    @contextmanager
    def writing(self) -> Generator[IndexTransaction]:
        """Change it, all or nothing."""
        with self._database.transaction() as transaction:
            yield IndexTransaction(transaction)

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
        f"INSERT INTO objects SELECT *, stored_bytes + {HEADER_BYTES} FROM alone ORDER BY name"
    )
    transaction.execute("DROP TABLE alone")


SCHEMA: Schema[Upgrade] = Schema(
    "workbench index", 4, (_create, _add_pruned, _forget_sights, _add_room)
)
