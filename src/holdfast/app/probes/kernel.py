"""System calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x0002_0000, 0x1000_0000, 0x2000_0000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18

_SYS_OPENAT2, _SYS_LANDLOCK_CREATE_RULESET = 437, 444  # the same on every architecture
_AT_FDCWD, _RESOLVE_BENEATH, _LANDLOCK_VERSION = -100, 0x08, 1

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def unshare(flags: int) -> None:
    """Leave the namespaces that we share with the one who started us."""
    _checked(_libc.unshare(flags))


def mount(kind: str, target: bytes, *, flags: int = 0, options: bytes | None = None) -> None:
    """Mount a filesystem that has no device."""
    _checked(_libc.mount(kind.encode(), target, kind.encode(), ctypes.c_ulong(flags), options))


def landlock_abi() -> int:
    """The version of Landlock that the kernel offers."""
    number = ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET)
    nothing, no_bytes = ctypes.c_void_p(None), ctypes.c_size_t(0)
    return _checked(_libc.syscall(number, nothing, no_bytes, ctypes.c_uint(_LANDLOCK_VERSION)))


def open_beneath(path: bytes, *, root: int = _AT_FDCWD) -> int:
    """Open a directory by a path that must not lead out of `root`."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH)
    return _checked(
        _libc.syscall(
            ctypes.c_long(_SYS_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(path),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
    )


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
