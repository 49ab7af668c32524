"""Every result of SQLite that is not a bug of ours has a name."""

from __future__ import annotations

import sqlite3

import pytest

from holdfast.failures import Failure
from holdfast.world.errors import database_failure, unopenable
from holdfast.world.failures import (
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    DiskDenied,
    DiskFull,
    DiskIo,
    DiskReadOnly,
)

BUSY = DatabaseUnavailable(path="p", reason="r")
DAMAGED = DatabaseDamaged(path="p", reason="r")


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        (sqlite3.SQLITE_BUSY, BUSY),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, BUSY),
        (sqlite3.SQLITE_LOCKED, BUSY),
        (sqlite3.SQLITE_CANTOPEN, unopenable("p", "r")),
        (sqlite3.SQLITE_CORRUPT, DAMAGED),
        (sqlite3.SQLITE_FORMAT, DAMAGED),
        (sqlite3.SQLITE_NOTADB, DAMAGED),
        (sqlite3.SQLITE_FULL, DiskFull(path="p")),
        (sqlite3.SQLITE_IOERR_SHMSIZE, DiskFull(path="p")),
        (sqlite3.SQLITE_READONLY, DiskReadOnly(path="p")),
        (sqlite3.SQLITE_READONLY_DBMOVED, DiskReadOnly(path="p")),
        (sqlite3.SQLITE_IOERR_FSYNC, DiskIo(path="p", reason="r")),
        (sqlite3.SQLITE_PERM, DiskDenied(path="p")),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, DatabaseRefused(path="p", reason="r")),
        (sqlite3.SQLITE_ERROR, None),
        (sqlite3.SQLITE_MISUSE, None),
        (sqlite3.SQLITE_INTERRUPT, None),
        (0, None),
    ],
)
def test_naming(result: int, failure: Failure | None) -> None:
    assert database_failure(result, path="p", reason="r") == failure


def test_only_what_waiting_helps_is_retried() -> None:
    assert BUSY.retryable
    assert not unopenable("p", "r").retryable
    assert not DAMAGED.retryable
