"""SQLite with durable commits, one writer and a versioned schema.

Write-ahead log, synchronous=FULL, foreign keys, one writer at a time; the file is ours alone. Only
what is derived from durable things elsewhere is synced less often. The name and version of its
schema are in its header; an older one is brought up to date in one transaction, a newer or foreign
one is refused untouched.

Decision: docs/decisions/0016-sqlite-settings.md
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from holdfast.failures import Failure, TooManyOpenFiles
from holdfast.world.errors import database_failure, disk_failure, unopenable
from holdfast.world.failures import (
    DatabaseDamaged,
    DatabaseUnavailable,
    DiskFull,
    DiskIo,
    DiskQuota,
    StoreForeign,
    StoreReadOnly,
)
from holdfast.world.schema import Schema

if TYPE_CHECKING:
    import sqlite3  # loaded only where a database is opened: it takes as long as all the rest

    Value = str | bytes | int | float | None

WAIT_LONGEST = 5.0
_SHARED_MEMORY_BYTES = 32 * 1024  # what SQLite needs to open a database with a write-ahead log
_SHORTAGES = (DiskFull, DiskQuota, TooManyOpenFiles)
_QUESTIONS = ("SELECT ", "PRAGMA ")
_creating = Lock()


class Transaction:
    """Statements that commit together or roll back; a snapshot allows only SELECT and PRAGMA.

    `PRAGMA query_only` would enforce that too, but each change of it drops all compiled statements.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_snapshot: bool = False) -> None:
        self._connection = connection
        self._allowed = _QUESTIONS if is_snapshot else ("",)

    def execute(self, statement: str, parameters: Sequence[Value] = ()) -> sqlite3.Cursor:
        """Carry out one statement; only while the transaction lasts."""
        assert self._connection.in_transaction, "this transaction has ended"
        assert statement.startswith(self._allowed), "a snapshot changes nothing"
        return self._connection.execute(statement, parameters)

    def execute_many(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        """Carry out one statement for every row."""
        assert self._connection.in_transaction, "this transaction has ended"
        assert statement.startswith(self._allowed), "a snapshot changes nothing"
        self._connection.executemany(statement, rows)


Upgrade = Callable[[Transaction], None]


class Database:
    """One database file; belongs to the thread that opened it."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._stopped_by: str | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        schema: Schema[Upgrade],
        *,
        wait_longest: float = WAIT_LONGEST,
        is_derived: bool = False,
    ) -> Self:
        """Open or make a database, bring it up to date, or refuse it untouched.

        The upgrades of its schema begin with the one that fills an empty file. Whoever else has
        the file is waited for `wait_longest` seconds at a time. One that is derived from what is
        durable elsewhere is not synced by each transaction: a power loss may take the last ones
        back, in order, and never damages it.
        """
        import sqlite3  # see above

        assert schema.oldest == 0, "the first upgrade fills an empty file"
        _make_private(path)
        with _naming(str(path)):
            connection = sqlite3.connect(path, timeout=wait_longest, isolation_level=None)
        with ExitStack() as undo:
            undo.callback(connection.close)
            database = cls(connection, str(path))
            database._prepare(schema, synchronous="NORMAL" if is_derived else "FULL")
            undo.pop_all()
        return database

    @contextmanager
    def transaction(self) -> Generator[Transaction]:
        """A durable write transaction: holds the write lock from its start."""
        if self._stopped_by is not None:
            raise StoreReadOnly(path=self._path, cause=self._stopped_by)
        try:
            with self._between("BEGIN IMMEDIATE") as transaction:
                yield transaction
        except DiskIo as failure:
            self._stopped_by = failure.reason
            raise

    @contextmanager
    def snapshot(self) -> Generator[Transaction]:
        """Read one moment of the database, whatever others write meanwhile."""
        with self._between("BEGIN DEFERRED", is_snapshot=True) as transaction:
            yield transaction

    def check_integrity(self) -> None:
        """Read the whole file, and raise DatabaseDamaged unless it agrees with itself."""
        with self.snapshot() as transaction:
            problems = [str(row[0]) for row in transaction.execute("PRAGMA integrity_check(5)")]
            if problems != ["ok"]:
                raise DatabaseDamaged(path=self._path, reason="; ".join(problems))
            orphan = transaction.execute("PRAGMA foreign_key_check").fetchone()
            if orphan is not None:
                raise DatabaseDamaged(
                    path=self._path, reason=f"{orphan[0]} refers to no {orphan[2]}"
                )

    def close(self) -> None:
        """Close the connection; may be called again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self, schema: Schema[Upgrade], *, synchronous: str) -> None:
        """Look before touching anything, then set up and upgrade."""
        with _naming(self._path):
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            found = self._version(schema)
            ways = schema.upgrades_from(found, path=self._path)
            if self._pragma("journal_mode = WAL") != "wal":
                raise unopenable(self._path, "this file system cannot share a write-ahead log")
            if ways:
                self._upgrade(schema)
            self._connection.execute("PRAGMA foreign_keys = ON")

    def _version(self, schema: Schema[Upgrade]) -> int:
        """The version of its schema; 0 for an empty file."""
        owner, version = self._pragma("application_id"), self._pragma("user_version")
        assert isinstance(owner, int)
        assert isinstance(version, int)
        tables = self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if owner != _application_id(schema) and (owner, version, tables) != (0, 0, 0):
            found = f"a database with application id {owner:#010x}"
            raise StoreForeign(path=self._path, expected=schema.name, found=found)
        return version

    def _upgrade(self, schema: Schema[Upgrade]) -> None:
        """All steps or none; tables may be rebuilt, so references are checked at the end."""
        self._connection.execute("PRAGMA foreign_keys = OFF")
        with self.transaction() as transaction:
            # Another process may have done it since we looked.
            for upgrade in schema.upgrades_from(self._version(schema), path=self._path):
                upgrade(transaction)
            orphans = transaction.execute("PRAGMA foreign_key_check").fetchall()
            assert not orphans, f"the upgrade of {schema.name} breaks references: {orphans[:5]}"
            transaction.execute(f"PRAGMA application_id = {_application_id(schema)}")
            transaction.execute(f"PRAGMA user_version = {schema.version}")

    @contextmanager
    def _between(self, begin: str, *, is_snapshot: bool = False) -> Generator[Transaction]:
        with _naming(self._path):
            self._connection.execute(begin)
            try:
                yield Transaction(self._connection, is_snapshot=is_snapshot)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def _pragma(self, words: str) -> object:
        row: tuple[object] = self._connection.execute(f"PRAGMA {words}").fetchone()
        return row[0]


def _application_id(schema: Schema[Upgrade]) -> int:
    return zlib.crc32(schema.name.encode()) >> 1  # the header holds a signed 32-bit number


def _make_private(path: Path) -> None:
    """Make the file if there is none; in either case nobody else may read it.

    A file that exists is not opened here: closing it would drop the locks that SQLite holds on
    it in this process. Neither may two threads make it at once.
    """
    try:
        with _creating, suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        if path.stat(follow_symlinks=False).st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error


@contextmanager
def _naming(path: str) -> Generator[None]:
    """Turn what SQLite complains of into failures; what is left are bugs of ours."""
    import sqlite3  # see above

    try:
        yield
    except sqlite3.Error as error:
        code: int = getattr(error, "sqlite_errorcode", 0)  # the module's own complaints have none
        failure = database_failure(code, path=path, reason=str(error))
        if failure is None:
            raise
        if isinstance(failure, DatabaseUnavailable | DiskIo):
            # SQLite reports a log or shared memory that cannot be made for lack of space or of
            # file descriptors as "unable to open database file" or as an I/O error.
            failure = _shortage(Path(path)) or failure
        raise failure from error


def _shortage(path: Path) -> Failure | None:
    """What is lacking when no further file can be made beside a database; None if nothing is."""
    probe = path.with_name(f"{path.name}-probe-{os.getpid()}")
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _SHARED_MEMORY_BYTES)
        finally:
            os.close(descriptor)
            os.unlink(probe)
    except OSError as error:
        failure = disk_failure(error, path=str(path))
        return failure if isinstance(failure, _SHORTAGES) else None
    return None
