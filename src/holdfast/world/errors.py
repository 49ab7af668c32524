"""Decide which failure an error of the operating system is."""

from __future__ import annotations

import errno
from collections.abc import Callable

from holdfast.failures import Failure, Recovery, descriptors_exhausted
from holdfast.world.failures import (
    DatabaseDamaged,
    DatabaseRefused,
    DatabaseUnavailable,
    DiskDenied,
    DiskFull,
    DiskIo,
    DiskMissing,
    DiskOccupied,
    DiskQuota,
    DiskReadOnly,
    DiskUnusable,
)

_NAMED: dict[int | None, Callable[..., Failure]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskQuota,
    errno.EROFS: DiskReadOnly,
    errno.EACCES: DiskDenied,
    errno.EPERM: DiskDenied,
    errno.ENOENT: DiskMissing,
    errno.ENOTDIR: DiskMissing,
    errno.EEXIST: DiskOccupied,
}


def disk_failure(error: OSError, *, path: str) -> Failure:
    """Name what went wrong at `path`; what has no name of its own keeps the system's words."""
    named = _NAMED.get(error.errno)
    if named is not None:
        return named(path=path)
    if (lacking := descriptors_exhausted(error)) is not None:
        return lacking
    reason = error.strerror or str(error)
    if error.errno == errno.EIO:
        return DiskIo(path=path, reason=reason)
    return DiskUnusable(path=path, reason=reason)


# Decide which failure a complaint of SQLite is.

_NAMED_BY_SQLITE: dict[int, Callable[[str, str], Failure]] = {
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
    named = _NAMED_BY_SQLITE.get(result & 0xFF)
    return None if named is None else named(path, reason)


def unopenable(path: str, reason: str) -> DatabaseUnavailable:
    """A database that will not open by itself, however long one waits."""
    failure = DatabaseUnavailable(path=path, reason=reason)
    return failure.narrow(recovery=Recovery.ESCALATE, retryable=False)
