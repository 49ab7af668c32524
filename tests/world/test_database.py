"""A database keeps what it acknowledged, upgrades whole or not at all, and names its troubles."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.world.database import Database, Transaction, Upgrade
from holdfast.world.errors import unopenable
from holdfast.world.failures import (
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    DiskFull,
    DiskIo,
    DiskMissing,
    StoreForeign,
    StoreReadOnly,
    StoreTooNew,
)
from holdfast.world.schema import Schema
from tests.faults.mounts import missing_for_mounts, mounted


def first(transaction: Transaction) -> None:
    transaction.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)")


def second(transaction: Transaction) -> None:
    transaction.execute("ALTER TABLE note ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody'")


def third(transaction: Transaction) -> None:
    """Rebuild a table that another one refers to."""
    transaction.execute("CREATE TABLE reply (note INTEGER REFERENCES note ON DELETE CASCADE)")
    transaction.execute("INSERT INTO reply SELECT id FROM note")
    transaction.execute("CREATE TABLE new (id INTEGER PRIMARY KEY, text TEXT, author TEXT)")
    transaction.execute("INSERT INTO new SELECT id, text, author FROM note")
    transaction.execute("DROP TABLE note")
    transaction.execute("ALTER TABLE new RENAME TO note")


STEPS: tuple[Upgrade, ...] = (first, second, third)


def schema(version: int) -> Schema[Upgrade]:
    return Schema("notes", version, STEPS[:version])


def write(database: Database, *texts: str) -> None:
    with database.transaction() as transaction:
        transaction.execute_many("INSERT INTO note (text) VALUES (?)", [(text,) for text in texts])


def texts(database: Database) -> list[str]:
    with database.snapshot() as transaction:
        return [row[0] for row in transaction.execute("SELECT text FROM note ORDER BY id")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


def version_on_disk(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


class TestOneWay:
    """Every database is opened in the same way."""

    def test_settings(self, path: Path) -> None:
        names = ["journal_mode", "synchronous", "foreign_keys", "busy_timeout", "trusted_schema"]
        names.append("user_version")
        database = Database.open(path, schema(1), wait_longest=2.5)
        with database, database.snapshot() as transaction:
            got = {name: transaction.execute(f"PRAGMA {name}").fetchone()[0] for name in names}

        assert got == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "busy_timeout": 2500,
            "trusted_schema": 0,
            "user_version": 1,
        }

    def test_what_is_derived_is_not_synced_by_each_transaction(self, path: Path) -> None:
        database = Database.open(path, schema(1), is_derived=True)
        with database, database.snapshot() as transaction:
            assert transaction.execute("PRAGMA synchronous").fetchone()[0] == 1

    def test_nobody_else_may_read_its_files(self, path: Path) -> None:
        before = os.umask(0)
        try:
            with Database.open(path, schema(1)) as database:
                write(database, "a")
                modes = {
                    each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()
                }
        finally:
            os.umask(before)

        assert modes == dict.fromkeys(["notes.db", "notes.db-shm", "notes.db-wal"], 0o600)

    def test_a_file_that_others_could_read_is_narrowed(self, path: Path) -> None:
        path.touch(0o644)
        Database.open(path, schema(1)).close()

        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_opening_it_again_in_one_process_keeps_the_locks(self, path: Path) -> None:
        """Without its lock, the next process to leave would take the log away from under us."""
        with Database.open(path, schema(1)) as database:
            write(database, "a")
            Database.open(path, schema(1)).close()
            code = "with Database.open(path, schema(1)) as database: write(database, 'b')"
            assert child(code, path).communicate(timeout=30)[1] == ""
            assert path.with_name("notes.db-wal").exists()
            write(database, "c")
            assert texts(database) == ["a", "b", "c"]


class TestTransactions:
    """All of it or nothing, and one at a time."""

    def test_what_was_written_is_there_after_reopening(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a", "b")
        with Database.open(path, schema(1)) as database:
            assert texts(database) == ["a", "b"]
            database.check_integrity()

    def test_an_error_in_the_middle_undoes_all_of_it(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a")
            with pytest.raises(ZeroDivisionError), database.transaction() as transaction:
                transaction.execute("DELETE FROM note")
                _ = 1 // 0
            assert texts(database) == ["a"]
            write(database, "b")
            assert texts(database) == ["a", "b"]

    def test_a_rule_of_the_schema_is_named(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a")
            with pytest.raises(DatabaseRefused) as raised:
                write(database, "b", "a")
            assert texts(database) == ["a"]

        reason = "UNIQUE constraint failed: note.text"
        assert raised.value == DatabaseRefused(path=str(path), reason=reason)

    def test_references_are_enforced(self, path: Path) -> None:
        database = Database.open(path, schema(3))
        with database, pytest.raises(DatabaseRefused), database.transaction() as transaction:
            transaction.execute("INSERT INTO reply VALUES (7)")

    def test_a_snapshot_is_one_moment_and_changes_nothing(self, path: Path) -> None:
        with Database.open(path, schema(1)) as reader, Database.open(path, schema(1)) as writer:
            with reader.snapshot() as transaction:
                before = transaction.execute("SELECT count(*) FROM note").fetchone()
                write(writer, "a")
                assert transaction.execute("SELECT count(*) FROM note").fetchone() == before
                with pytest.raises(AssertionError, match="changes nothing"):
                    transaction.execute("DELETE FROM note")
                with pytest.raises(AssertionError, match="changes nothing"):
                    transaction.execute_many("DELETE FROM note WHERE id = ?", [(1,)])
            assert texts(reader) == ["a"]
            write(reader, "b")

    def test_a_transaction_that_has_ended_does_nothing_more(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            with database.transaction() as transaction:
                pass
            with pytest.raises(AssertionError, match="has ended"):
                transaction.execute("DELETE FROM note")
            with pytest.raises(AssertionError, match="has ended"):
                transaction.execute_many("DELETE FROM note WHERE id = ?", [(1,)])

    def test_a_wrong_statement_is_a_bug_and_keeps_its_own_name(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            bug = pytest.raises(sqlite3.OperationalError, match="no such table")
            with bug, database.transaction() as transaction:
                transaction.execute("SELECT * FROM misspelt")
            bug = pytest.raises(sqlite3.OperationalError, match="within a transaction")
            with bug, database.transaction(), database.transaction():
                pass
            write(database, "a")


PRELUDE = """
import sys
from pathlib import Path
from tests.world.test_database import *
path = Path(sys.argv[1])
def pause(word):
    print(word, flush=True)
    sys.stdin.read()
"""


def child(code: str, path: Path, *, under: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Run some lines in a process of its own."""
    return subprocess.Popen(
        [*under, sys.executable, "-c", PRELUDE + code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": "src:.", "PATH": os.defpath},
    )


@contextmanager
def paused(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has reached its pause; it is killed on leaving."""
    with child(code, path) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "middle\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


HALF_WRITTEN = """
with Database.open(path, schema(1)) as database:
    with database.transaction() as transaction:
        for number in range(20_000):
            transaction.execute("INSERT INTO note (text) VALUES (?)", [f"{number} " + "x" * 200])
        pause("middle")
"""
HALF_UPGRADED = """
def hanging(transaction):
    third(transaction)
    pause("middle")
Database.open(path, Schema("notes", 3, (first, second, hanging)))
"""


class TestProcesses:
    """Other processes, also those that die, do no harm."""

    def test_another_writer_is_waited_for_then_named(self, path: Path) -> None:
        code = "with Database.open(path, schema(1)).transaction(): pause('middle')"
        with paused(code, path), Database.open(path, schema(1), wait_longest=0.1) as database:
            with pytest.raises(DatabaseUnavailable) as raised:
                write(database, "a")
            assert raised.value.retryable
            assert texts(database) == []
        with Database.open(path, schema(1)) as database:
            write(database, "a")

    def test_two_writers_lose_nothing(self, path: Path) -> None:
        code = """
with Database.open(path, schema(1), wait_longest=30.0) as database:
    for number in range(50):
        write(database, f"{os.getpid()} {number}")
"""
        writers = [child(code, path) for _ in range(4)]
        assert [writer.communicate(timeout=100)[1] for writer in writers] == [""] * 4
        with Database.open(path, schema(1)) as database:
            assert len(texts(database)) == 200
            database.check_integrity()

    def test_killed_in_the_middle_nothing_of_it_is_left(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "kept")
        with paused(HALF_WRITTEN, path):
            pass
        with Database.open(path, schema(1)) as database:
            assert texts(database) == ["kept"]
            database.check_integrity()


class TestVersions:
    """A schema is found, brought up to date, or refused."""

    def test_step_by_step_upgrades_keep_what_was_there(self, path: Path) -> None:
        for version in (1, 2, 3):
            with Database.open(path, schema(version)) as database:
                write(database, f"at {version}")
                database.check_integrity()
        with Database.open(path, schema(3)) as database:
            assert texts(database) == ["at 1", "at 2", "at 3"]
            with database.snapshot() as transaction:
                assert transaction.execute("SELECT note FROM reply").fetchall() == [(1,), (2,)]

    def test_several_steps_at_once_end_the_same(self, path: Path, tmp_path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a")
        fresh = tmp_path / "fresh.db"
        Database.open(path, schema(3)).close()
        Database.open(fresh, schema(3)).close()

        def tables(path: Path) -> list[tuple[str, ...]]:
            connection = sqlite3.connect(path)
            try:
                return connection.execute("SELECT sql FROM sqlite_schema ORDER BY name").fetchall()
            finally:
                connection.close()

        assert tables(path) == tables(fresh)

    def test_a_newer_one_is_refused_untouched(self, path: Path) -> None:
        with Database.open(path, schema(3)) as database:
            write(database, "a")
        before = path.read_bytes()
        with pytest.raises(StoreTooNew) as raised:
            Database.open(path, schema(2))

        assert raised.value == StoreTooNew(path=str(path), schema="notes", found=3, newest=2)
        assert path.read_bytes() == before

    def test_another_programs_database_is_refused_untouched(self, path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
        connection.close()
        before = path.read_bytes()
        with pytest.raises(StoreForeign):
            Database.open(path, schema(1))

        assert path.read_bytes() == before

    def test_another_store_of_ours_is_refused(self, path: Path) -> None:
        Database.open(path, schema(1)).close()
        with pytest.raises(StoreForeign):
            Database.open(path, Schema("other", 1, (first,)))

    def test_killed_in_an_upgrade_the_old_version_is_intact(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a")
        with paused(HALF_UPGRADED, path):
            pass
        assert version_on_disk(path) == 1
        with Database.open(path, schema(1)) as database:
            write(database, "b")
        with Database.open(path, schema(3)) as database:
            assert texts(database) == ["a", "b"]
            database.check_integrity()

    def test_a_failing_upgrade_changes_nothing(self, path: Path) -> None:
        def failing(transaction: Transaction) -> None:
            transaction.execute("DROP TABLE note")
            transaction.execute("CREATE TABLE broken (x UNIQUE)")
            transaction.execute_many("INSERT INTO broken VALUES (?)", [(1,), (1,)])

        with Database.open(path, schema(1)) as database:
            write(database, "a")
        with pytest.raises(DatabaseRefused):
            Database.open(path, Schema("notes", 2, (first, failing)))
        with Database.open(path, schema(1)) as database:
            assert texts(database) == ["a"]

    def test_an_upgrade_that_breaks_references_is_a_bug(self, path: Path) -> None:
        def orphaning(transaction: Transaction) -> None:
            transaction.execute("DELETE FROM note")

        with Database.open(path, schema(2)) as database:
            write(database, "a")
        Database.open(path, schema(3)).close()
        with pytest.raises(AssertionError, match="breaks references"):
            Database.open(path, Schema("notes", 4, (*STEPS, orphaning)))
        assert version_on_disk(path) == 3

    def test_two_processes_may_upgrade_at_once(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, "a")
        openers = [child("Database.open(path, schema(3)).close()", path) for _ in range(4)]

        assert [opener.communicate(timeout=60)[1] for opener in openers] == [""] * 4
        assert version_on_disk(path) == 3


class TestTrouble:
    """Each trouble has its own name."""

    @pytest.mark.parametrize(
        "content", [b"no database at all" * 100, b"SQLite format 3\0" + b"x" * 4080]
    )
    def test_what_is_no_database_is_named_and_kept(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(DatabaseDamaged):
            Database.open(path, schema(1))

        assert path.read_bytes() == content

    def test_damage_inside_is_found(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            write(database, *(f"{number} " + "x" * 300 for number in range(200)))
        with path.open("r+b") as file:
            for page in range(4, 14):
                file.seek(4096 * page)
                file.write(b"\xa5" * 600)
        with Database.open(path, schema(1)) as database, pytest.raises(DatabaseDamaged):
            database.check_integrity()

    def test_lost_references_are_found(self, path: Path) -> None:
        Database.open(path, schema(3)).close()
        connection = sqlite3.connect(path)
        connection.execute("INSERT INTO reply VALUES (7)")
        connection.commit()
        connection.close()
        with Database.open(path, schema(3)) as database, pytest.raises(DatabaseDamaged) as raised:
            database.check_integrity()

        assert raised.value == DatabaseDamaged(path=str(path), reason="reply refers to no note")

    def test_no_such_directory(self, tmp_path: Path) -> None:
        path = tmp_path / "none" / "notes.db"
        with pytest.raises(DiskMissing) as raised:
            Database.open(path, schema(1))

        assert raised.value == DiskMissing(path=str(path))

    def test_a_directory_in_its_place(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseUnavailable) as raised:
            Database.open(tmp_path, schema(1))

        assert raised.value == unopenable(str(tmp_path), "unable to open database file")

    def test_a_full_disk(self, path: Path) -> None:
        with Database.open(path, schema(1)) as database:
            with pytest.raises(DiskFull) as raised, database.transaction() as transaction:
                transaction.execute("PRAGMA max_page_count = 3")
                write_many = ((f"{number} " + "x" * 3000,) for number in range(10))
                transaction.execute_many("INSERT INTO note (text) VALUES (?)", write_many)
            assert texts(database) == []
            with database.transaction() as transaction:
                transaction.execute("PRAGMA max_page_count = 1000")
            write(database, "b")

        assert raised.value == DiskFull(path=str(path))

    def test_a_sync_that_failed_stops_all_writing(self, path: Path) -> None:
        strace = shutil.which("strace")
        if strace is None:
            pytest.skip("strace is not installed, so a failing fdatasync cannot be made")
        with Database.open(path, schema(1)) as database:
            write(database, "a")
        code = """
def attempt(text):
    try:
        write(database, text)
    except (DiskIo, StoreReadOnly) as failure:
        print(failure.code)
with Database.open(path, schema(1)) as database:
    attempt("b")
    attempt("c")
    print(texts(database))
"""
        inject = "inject=fdatasync,fsync:error=EIO:when=1"
        under = (
            strace,
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync,fsync",
            "-e",
            inject,
        )
        output, errors = child(code, path, under=under).communicate(timeout=60)

        assert (output, errors) == ("DISK_IO\nSTORE_READ_ONLY\n['a']\n", "")
        assert {DiskIo.code, StoreReadOnly.code} == {"DISK_IO", "STORE_READ_ONLY"}


@pytest.mark.promise("W7")
@pytest.mark.skipif(missing_for_mounts() is not None, reason=f"{missing_for_mounts()}")
def test_a_log_that_finds_no_space_is_a_full_disk(tmp_path: Path) -> None:
    """SQLite says "unable to open database file" where a full file system makes no new file."""
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m,nr_inodes=2", "tmpfs") as small:
        path = small / "d.db"
        with pytest.raises(DiskFull) as caught:
            Database.open(path, schema(1))
        assert [each.name for each in small.iterdir()] == ["d.db"]

    assert caught.value.path == str(path)
