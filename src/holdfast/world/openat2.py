"""Open what lies beneath a directory, by the one system call of Linux that can.

The kernel resolves the whole path, links included, also while others rename things under its
feet. What would leave the directory is refused with EXDEV, or stays in it as if it were the root.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_NUMBER = 437  # the same on every architecture that Python runs on here
_PLAIN_LINKS = 0x02  # none of those in /proc that lead to any place at all
_NO_LINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RESOLVE_IN_ROOT = 0x10
_TRIES_MAX = 32


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def open_beneath(root: int, path: bytes, flags: int, mode: int) -> int:
    """Open `path` below the directory `root`; raise OSError, EXDEV if it leads out.

    EAGAIN means that a rename anywhere on the system raced with resolving `..` in every attempt.
    """
    return _opened(root, path, _how(flags, mode, _RESOLVE_BENEATH | _PLAIN_LINKS))


def open_in_root(root: int, path: bytes, flags: int, mode: int) -> int:
    """Open `path` as if the directory `root` were the root of everything; raise OSError.

    Absolute links lead from that root, and `..` in it leads nowhere else.
    """
    return _opened(root, path, _how(flags, mode, _RESOLVE_IN_ROOT | _PLAIN_LINKS))


def open_past_no_link(root: int, path: bytes, flags: int) -> int:
    """Open what exists at `path` below the directory `root`; raise OSError, ELOOP at any link."""
    return _opened(root, path, _how(flags, 0, _RESOLVE_BENEATH | _NO_LINKS))


@cache
def _how(flags: int, mode: int, resolve: int) -> _How:
    """Made once for each way to open: the call only reads it."""
    return _How(flags | os.O_CLOEXEC, mode, resolve)


def _opened(root: int, path: bytes, how: _How) -> int:
    assert b"\0" not in path, "the call would silently stop reading there"
    number = errno.EAGAIN
    for _ in range(_TRIES_MAX):
        descriptor = _syscall()(_NUMBER, root, path, how, ctypes.sizeof(how))
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number not in {errno.EAGAIN, errno.EINTR}:
            break
    raise OSError(number, os.strerror(number))


@cache
def has_openat2() -> bool:
    """Whether this system has the call and lets us make it; found out by making it."""
    if sys.platform != "linux":
        return False
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.close(open_beneath(top, b".", os.O_PATH | os.O_DIRECTORY, 0))
    except OSError:  # ENOSYS from an old kernel, EPERM from a filter that never heard of it
        return False
    finally:
        os.close(top)
    return True


@cache
def _syscall() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (
        ctypes.c_long,
        ctypes.c_long,
        ctypes.c_char_p,
        ctypes.POINTER(_How),
        ctypes.c_size_t,
    )
    call.restype = ctypes.c_long
    return call
