"""Decide which failure an error of the operating system is."""

from __future__ import annotations

import errno
from collections.abc import Callable

from holdfast.failures import Failure, exhausted
from holdfast.world.failures import (
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
    if (lacking := exhausted(error)) is not None:
        return lacking
    reason = error.strerror or str(error)
    if error.errno == errno.EIO:
        return DiskIo(path=path, reason=reason)
    return DiskUnusable(path=path, reason=reason)
