"""Decide which failure a complaint of SQLite is."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.failures import Failure, Recovery
from holdfast.world.failures import (
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    DiskDenied,
    DiskFull,
    DiskIo,
    DiskReadOnly,
)

_NAMED: dict[int, Callable[[str, str], Failure]] = {
    3: lambda path, _: DiskDenied(path=path),  # SQLITE_PERM
    5: lambda path, reason: DatabaseUnavailable(path=path, reason=reason),  # SQLITE_BUSY
    6: lambda path, reason: DatabaseUnavailable(path=path, reason=reason),  # SQLITE_LOCKED
    8: lambda path, _: DiskReadOnly(path=path),  # SQLITE_READONLY
    10: lambda path, reason: DiskIo(path=path, reason=reason),  # SQLITE_IOERR
    11: lambda path, reason: DatabaseDamaged(path=path, reason=reason),  # SQLITE_CORRUPT
    13: lambda path, _: DiskFull(path=path),  # SQLITE_FULL
    14: lambda path, reason: unopenable(path, reason),  # SQLITE_CANTOPEN
    19: lambda path, reason: DatabaseRefused(path=path, reason=reason),  # SQLITE_CONSTRAINT
    24: lambda path, reason: DatabaseDamaged(path=path, reason=reason),  # SQLITE_FORMAT
    26: lambda path, reason: DatabaseDamaged(path=path, reason=reason),  # SQLITE_NOTADB
}
_IOERR_SHMSIZE = 10 | 19 << 8  # what is shared could not grow: SQLite says no more than that


def database_failure(result: int, *, path: str, reason: str) -> Failure | None:
    """Name a complaint by its (extended) result code; None for what only our own bugs cause."""
    if result == _IOERR_SHMSIZE:
        return DiskFull(path=path)
    named = _NAMED.get(result & 0xFF)
    return None if named is None else named(path, reason)


def unopenable(path: str, reason: str) -> DatabaseUnavailable:
    """A database that will not open by itself, however long one waits."""
    failure = DatabaseUnavailable(path=path, reason=reason)
    return failure.narrow(recovery=Recovery.ESCALATE, retryable=False)
