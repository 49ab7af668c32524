"""Index of the object store: locations of objects, checkpoints, and the stat cache. SQLite.

The index is derived data. Objects and checkpoints can be rebuilt from the segments
(`index_rebuild`); the stat cache cannot, but without it the next scan merely reads more. A damaged
index is therefore renamed and rebuilt, and never a reason to lose data.

Names of tables and columns (`sights`, `sight`, `room`) are part of the schema on disk.
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


class CheckpointTable:
    """Checkpoints, and tombstones of pruned ones, within one transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, id: str, name: bytes) -> None:
        self._transaction.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (id, name))

    def find(self, id: str) -> bytes | None:
        """Return the object hash of a checkpoint; None if the id is unknown."""
        row = self._transaction.execute(
            "SELECT name FROM checkpoints WHERE id = ?", (id,)
        ).fetchone()
        return None if row is None else row[0]

    def all(self) -> list[tuple[str, bytes]]:
        """Return id and object hash of every checkpoint, newest first."""
        return self.newest(-1)

    def newest(self, most: int) -> list[tuple[str, bytes]]:
        """Return the newest `most` checkpoints; costs no more than that many rows."""
        return self._transaction.execute(
            "SELECT id, name FROM checkpoints ORDER BY id DESC LIMIT ?", (most,)
        ).fetchall()

    def count(self) -> int:
        count: int = self._transaction.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
        return count

    def clear(self) -> None:
        """Remove all rows before a rebuild."""
        self._transaction.execute("DELETE FROM checkpoints")

    def prune(self, names: Collection[bytes]) -> None:
        """Remove checkpoints and record tombstones, so that a rebuild does not revive them."""
        rows = [(name,) for name in names]
        self._transaction.execute_many("DELETE FROM checkpoints WHERE name = ?", rows)
        self._transaction.execute_many("INSERT OR IGNORE INTO pruned VALUES (?)", rows)

    def pruned(self) -> list[bytes]:
        """Return, sorted, the tombstones whose checkpoint is still in a segment."""
        self._transaction.execute("DELETE FROM pruned WHERE name NOT IN (SELECT name FROM objects)")
        rows = self._transaction.execute("SELECT name FROM pruned ORDER BY name")
        return [row[0] for row in rows]


class DirectoryRecord(NamedTuple):
    """Stat cache entry: tree and stat records of a directory at its last scan."""

    tree: bytes
    totals: Totals
    stats: bytes
    is_racy: bool


# A damaged database file can return a value of another type; the casts keep bytes as bytes.
_TREE, _SIGHT = "ifnull(CAST(tree AS BLOB), x'')", "ifnull(CAST(sight AS BLOB), x'')"
_KNOWN = f"{_TREE}, files, size, uncovered, {_SIGHT}, is_racy"


# The columns, as they come.
def _known(
    tree: bytes, files: int, size: int, uncovered: int, stats: bytes, is_racy: int
) -> DirectoryRecord:
    return DirectoryRecord(tree, Totals(files, size, uncovered), stats, bool(is_racy))


_LAYOUT = "layout"


class StatCache:
    """Stat records of directories, within one transaction of the index.

    Each origin (project, draft, copy) has its own records: a scan of one says nothing about
    another.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def known(self, origin: str, directory: bytes) -> DirectoryRecord | None:
        """Return the record of a directory; None if it was never scanned."""
        row = self._transaction.execute(
            f"SELECT {_KNOWN} FROM sights WHERE origin = ? AND directory = ?", (origin, directory)
        ).fetchone()
        return None if row is None else _known(*row)

    def all(self, origin: str) -> dict[bytes, DirectoryRecord]:
        """Return all records of an origin: one query instead of one for each directory."""
        rows = self._transaction.execute(
            f"SELECT directory, {_KNOWN} FROM sights WHERE origin = ?", (origin,)
        )
        return {directory: _known(*row) for directory, *row in rows}

    def reliable(self, origin: str) -> list[tuple[bytes, bytes]]:
        """Return directories without racy entries, each with its stat records."""
        return self._transaction.execute(
            f"SELECT directory, {_SIGHT} FROM sights WHERE origin = ? AND NOT is_racy", (origin,)
        ).fetchall()

    def note(self, origin: str, looked: Iterable[tuple[bytes, DirectoryRecord]]) -> None:
        """Store the records of scanned directories."""
        self._transaction.execute_many(
            "INSERT OR REPLACE INTO sights VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (origin, directory, known.tree, *known.totals, known.stats, known.is_racy)
                for directory, known in looked
            ),
        )

    def layout(self, origin: str) -> bytes:
        """Return a token that changes when a directory is replaced by another inode.

        Empty if unknown.
        """
        known = self.known(f"{_LAYOUT} {origin}", b"")
        return b"" if known is None else known.stats

    def note_layout(self, origin: str, token: bytes) -> None:
        self.note(
            f"{_LAYOUT} {origin}",
            [(b"", DirectoryRecord(b"", Totals(0, 0, 0), token, is_racy=False))],
        )

    def forget(self, origin: str, directory: bytes) -> None:
        """Delete the records of a directory and of all directories below it."""
        self._transaction.execute(
            "DELETE FROM sights WHERE origin = ? AND"
            " (directory = ? OR (directory >= ? AND directory < ?))",
            # "0" is the byte after "/".
            (origin, directory, directory + b"/", directory + b"0"),
        )

    def racy(self, origin: str) -> list[bytes]:
        """Return directories that must be scanned again even if their stat records match."""
        rows = self._transaction.execute(
            "SELECT directory FROM sights WHERE origin = ? AND is_racy", (origin,)
        )
        return [row[0] for row in rows]

    def forget_all(self) -> None:
        """Delete all records, because the trees they refer to may be lost."""
        self._transaction.execute("DELETE FROM sights")

    def forget_others(self, trees: Collection[bytes]) -> None:
        """Delete all records whose tree is not in `trees`."""
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
    """One read or write transaction of the index."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._is_empty: bool | None = None
        self.stat_cache = StatCache(transaction)
        self.checkpoints = CheckpointTable(transaction)

    def find(self, name: bytes) -> Location | None:
        """Return the location of an object; None if it is unknown."""
        if self._is_empty:
            return None
        row = self._transaction.execute(
            "SELECT segment, offset, stored_bytes, room FROM objects WHERE name = ?", (name,)
        ).fetchone()
        if row is not None:
            return Location(*row)
        if self._is_empty is None:
            # Spares a first checkpoint one query per file.
            found = self._transaction.execute("SELECT 1 FROM objects LIMIT 1").fetchone()
            self._is_empty = found is None
        return None

    def find_all(self, names: Sequence[bytes]) -> dict[bytes, Location]:
        """Return the locations of the objects that exist, in batched queries."""
        found: dict[bytes, Location] = {}
        for start in range(0, len(names), _TOGETHER):
            some = names[start : start + _TOGETHER]
            # Padded to a constant length: SQLite compiles the statement only once.
            asked = (*some, *repeat(some[-1], _TOGETHER - len(some)))
            rows = self._transaction.execute(_FIND_ALL, asked)
            found.update((name, Location(*location)) for name, *location in rows)
        return found

    def add_objects(self, objects: Mapping[bytes, Location]) -> None:
        """Insert locations; an object that is already present keeps its first location."""
        self._is_empty = None
        self._transaction.execute_many(
            "INSERT OR IGNORE INTO objects VALUES (?, ?, ?, ?, ?)",
            # Sorted inserts fill B-tree pages one after the other instead of splitting many.
            sorted((name, *location) for name, location in objects.items()),
        )

    def seen(self) -> dict[int, int]:
        """Return the indexed length of each segment."""
        return dict(self._transaction.execute("SELECT number, seen FROM segments").fetchall())

    def note_seen(self, seen: Mapping[int, int]) -> None:
        self._transaction.execute_many(
            "INSERT OR REPLACE INTO segments VALUES (?, ?)", seen.items()
        )

    def forget_segment(self, number: int) -> None:
        """Delete all rows of a lost segment, and the stat cache, which may refer to lost trees."""
        self._transaction.execute("DELETE FROM objects WHERE segment = ?", (number,))
        self._transaction.execute("DELETE FROM segments WHERE number = ?", (number,))
        self.stat_cache.forget_all()

    def forget_objects(self, names: Iterable[bytes]) -> None:
        """Delete the rows of damaged objects."""
        self._transaction.execute_many(
            "DELETE FROM objects WHERE name = ?", ((name,) for name in names)
        )

    def forget_all_objects(self) -> None:
        """Delete all locations before a rebuild; damage inside the table goes along."""
        self._is_empty = None
        self._transaction.execute("DELETE FROM objects")

    def objects_in(self, number: int) -> list[tuple[bytes, Location]]:
        """Return the objects located in a segment, in file order."""
        rows = self._transaction.execute(
            "SELECT name, segment, offset, stored_bytes, room FROM objects WHERE segment = ?"
            " ORDER BY offset",
            (number,),
        )
        return [(name, Location(*location)) for name, *location in rows]

    def names_at(self, location: Location) -> list[bytes]:
        """Return all objects that share a record; a full table scan."""
        rows = self._transaction.execute(
            "SELECT name FROM objects WHERE segment = ? AND offset = ?", location[:2]
        )
        return [row[0] for row in rows]

    def leave(self, number: int) -> None:
        """Delete the rows of a segment whose needed objects were copied elsewhere."""
        self._is_empty = None
        self._transaction.execute("DELETE FROM objects WHERE segment = ?", (number,))
        self._transaction.execute("DELETE FROM segments WHERE number = ?", (number,))


class Index:
    """Index of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path, disk: Disk) -> Index:
        """Open or create the index.

        One that is damaged or foreign is renamed and recreated empty.
        """
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
        """Rename an unusable index and create an empty one."""
        _set_aside(path, disk)
        return cls(Database.open(path, SCHEMA, is_derived=True))

    @contextmanager
    def reading(self) -> Generator[IndexTransaction]:
        """Run a read transaction on one snapshot."""
        with self._database.snapshot() as transaction:
            yield IndexTransaction(transaction)

    @contextmanager
    def writing(self) -> Generator[IndexTransaction]:
        """Run a write transaction; it commits as a whole or not at all."""
        with self._database.transaction() as transaction:
            yield IndexTransaction(transaction)

    def close(self) -> None:
        self._database.close()


def _set_aside(path: Path, disk: Disk) -> None:
    word = disk.fresh_word()
    # Kept under another name rather than deleted, so that the damage can be examined.
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
    """Whether the stored schema equals ours verbatim.

    Damaged schema pages can still parse as SQL.
    """
    with database.snapshot() as transaction:
        rows = transaction.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {row[0] for row in rows} == {_OBJECTS, *_OTHERS, _PRUNED}


def _create(transaction: Transaction) -> None:
    for statement in (_OBJECTS_ALONE, *_OTHERS):
        transaction.execute(statement)


def _add_pruned(transaction: Transaction) -> None:
    transaction.execute(_PRUNED)


def _forget_sights(transaction: Transaction) -> None:
    """Drop records of an older encoding; the next scan reads everything."""
    transaction.execute("DELETE FROM sights")


def _add_room(transaction: Transaction) -> None:
    """Before bundles, every object had a record of its own."""
    transaction.execute("ALTER TABLE objects RENAME TO alone")
    transaction.execute(_OBJECTS)
    transaction.execute(
        f"INSERT INTO objects SELECT *, stored_bytes + {HEADER_BYTES} FROM alone ORDER BY name"
    )
    transaction.execute("DROP TABLE alone")


SCHEMA: Schema[Upgrade] = Schema(
    "workbench index", 4, (_create, _add_pruned, _forget_sights, _add_room)
)
