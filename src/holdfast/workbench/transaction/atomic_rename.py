"""Give things other names in one step, such that nothing that has a name ever loses it.

The two system calls of Linux that Python has no function for: names that change places, and a
rename that spares what is there already. Where a system or a file system has neither, the first
is missing, and the second is done by a second name and one less.
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
    """A name in a directory that is open."""

    directory: int
    name: bytes


class ExchangeMissing(Exception):
    """Names cannot change places here."""


def exchange(one: NameAt, other: NameAt) -> None:
    """Let two things that exist change places; raise OSError, or ExchangeMissing."""
    try:
        _renameat2(one, other, _EXCHANGE)
    except OSError as error:
        if error.errno in _UNKNOWN_THERE:
            raise ExchangeMissing from error
        raise


def move(old: NameAt, new: NameAt) -> None:
    """Rename to a name that nothing has; raise OSError, EEXIST if something has it.

    What has both names already, because somebody was killed, loses the old one.
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
    """Do what `move` does where no system call does; a kill can leave both names."""
    if stat.S_ISDIR(_status(old).st_mode):
        # It can have only one name. An empty directory that appears there now would be replaced.
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
    """Have the system begin to write a file out, if it knows how; whoever syncs waits less."""
    call = _sync_file_range()
    if call is not None:
        call(descriptor, 0, 0, _WRITE)  # only a hint: what goes wrong, the sync will say


def _unlink_old(old: NameAt, new: NameAt) -> None:
    """Take the old name away from what has both; else raise FileExistsError."""
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
