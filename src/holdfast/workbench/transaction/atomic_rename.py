"""Atomic renames: RENAME_EXCHANGE and RENAME_NOREPLACE of renameat2(2).

Python has no function for them. Where the kernel or the file system lacks them, `exchange` raises
ExchangeMissing, and `move` uses link and unlink instead: no entry is ever without a name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_WRITE: Final = 2  # SYNC_FILE_RANGE_WRITE
_UNKNOWN_THERE: Final = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}


class NameAt(NamedTuple):
    """A name relative to an open directory."""

    directory: int
    name: bytes


class ExchangeMissing(Exception):
    """RENAME_EXCHANGE is not supported here."""


def exchange(one: NameAt, other: NameAt) -> None:
    """Exchange two existing names; raises OSError or ExchangeMissing."""
    try:
        _renameat2(one, other, _EXCHANGE)
    except OSError as error:
        if error.errno in _UNKNOWN_THERE:
            raise ExchangeMissing from error
        raise


def move(old: NameAt, new: NameAt) -> None:
    """Rename to an unused name; raises OSError, with EEXIST if it is used.

    If both names already belong to one file, because a process was killed halfway, the old one is
    removed.
    """
    try:
        _renameat2(old, new, _NOREPLACE)
    except FileExistsError:
        _unlink_old(old, new)
    except OSError as error:
        if error.errno not in _UNKNOWN_THERE:
            raise
        move_by_two_names(old, new)


def move_by_two_names(old: NameAt, new: NameAt) -> None:
    """Do `move` by link and unlink; a kill can leave both names."""
    if stat.S_ISDIR(_status(old).st_mode):
        # Directories cannot be hard-linked. An empty one created at `new` now would be replaced.
        if _exists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)
        return
    try:
        os.link(
            old.name,
            new.name,
            src_dir_fd=old.directory,
            dst_dir_fd=new.directory,
            follow_symlinks=False,
        )
    except FileExistsError:
        _unlink_old(old, new)
    else:
        os.unlink(old.name, dir_fd=old.directory)


def start_writing(descriptor: int) -> None:
    """Start writeback of a file, so that a later fsync waits less; errors are ignored."""
    call = _sync_file_range()
    if call is not None:
        # A hint; fsync reports errors.
        call(descriptor, 0, 0, _WRITE)


def _unlink_old(old: NameAt, new: NameAt) -> None:
    """Remove the old name if both belong to one file; else raise FileExistsError."""
    if not os.path.samestat(_status(old), _status(new)):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.unlink(old.name, dir_fd=old.directory)


def _status(at: NameAt) -> os.stat_result:
    return os.stat(at.name, dir_fd=at.directory, follow_symlinks=False)


def _exists(at: NameAt) -> bool:
    try:
        _status(at)
    except FileNotFoundError:
        return False
    return True


def _renameat2(old: NameAt, new: NameAt, flags: int) -> None:
    call = _call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(old.directory, old.name, new.directory, new.name, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@cache
def _call() -> Callable[..., int] | None:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        call.argtypes = (
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_uint,
        )
    return call


@cache
def _sync_file_range() -> Callable[..., int] | None:
    call = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if call is not None:
        call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return call
