"""Fill a file with what another holds: by sharing it, or by copying what is not empty space."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from typing import Final

_FICLONE: Final = 0x4004_9409
_AT_ONCE: Final = 1 << 20
_NOT_HERE: Final = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY}


def share(source: int, target: int) -> None:
    """Let an empty file have the data of another, for no space; raises `OSError` if it cannot."""
    fcntl.ioctl(target, _FICLONE, source)


def fill(source: int, target: int, size: int) -> None:
    """Copy so many bytes into an empty file; where nothing was ever written, nothing is now."""
    for start, end in _written(source, size):
        at = start
        while at < end:
            taken = _copied(source, target, at, min(end - at, _AT_ONCE))
            if not taken:
                return  # it is shorter now, and whoever asked will see that
            at += taken
    os.ftruncate(target, size)


def sync_all(directory: int) -> None:
    """Return once everything on the file system of a directory survives a power loss."""
    if sys.platform != "linux":
        os.sync()
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(directory) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _copied(source: int, target: int, at: int, count: int) -> int:
    if sys.platform == "linux":
        try:
            return os.copy_file_range(source, target, count, at, at)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    data = os.pread(source, count, at)
    done = 0
    while done < len(data):
        done += os.pwrite(target, data[done:], at + done)
    return done


def _written(source: int, size: int) -> Iterator[tuple[int, int]]:
    """Where something was written, from and to."""
    at = 0
    while at < size:
        try:
            start = os.lseek(source, at, os.SEEK_DATA)
            at = min(os.lseek(source, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # there is nothing more
                return
            if error.errno != errno.EINVAL:
                raise
            start, at = at, size  # this file system does not say
        if start < at:
            yield start, at
