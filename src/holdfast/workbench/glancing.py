"""Ask the system about every known name as fast as this language can, and tell what differs.

A directory whose own times have not changed holds the same names. That is true of the file systems
in the list, and of Linux; anywhere else there is no glance, and every directory is listed.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import repeat

from holdfast.workbench.core.stat_cache import names_of

NAMES_MAX = 65_536  # in one directory; one that holds more is listed
_SLOTS_AT_FIRST = 32
_STATX_BYTES = 256
_STATX_WORDS = _STATX_BYTES // 8
_WORDS = (3, 4, 5, 12, 13, 14, 15, 17)  # of those, what a line consists of, in its order
_BASIC_STATS = 0x7FF
_NO_FOLLOW = 0x100
_NO_AUTOMOUNT = 0x800
_OPEN = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STATFS_BYTES = 256
_SOUND = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0x01021994,  # tmpfs
        0xF2F52010,  # f2fs
        0x2FC12FC1,  # zfs
        0xCA451A4E,  # bcachefs
    }
)

_MEMORY = frozenset({0x01021994, 0x858458F6})  # tmpfs, ramfs

Statx = Callable[[int, bytes, int, int, object], int]


def glance(root: int, sights: Iterable[tuple[bytes, bytes]]) -> list[bytes] | None:
    """The directories in which a known name differs from its sight; None if nobody can tell.

    A new name shows as a change of the directory that it is in, and so as a difference in the one
    above; what is directly below `root` must be listed in any case.
    """
    statx = _statx()
    if statx is None or not _is_sound(root):
        return None
    slots = _Slots()
    return [
        directory for directory, sight in sights if not slots.agree(statx, root, directory, sight)
    ]


class _Slots:
    """Where the system writes what it says of each name of a directory."""

    def __init__(self) -> None:
        self._count = 0
        self._grow(_SLOTS_AT_FIRST)

    def agree(self, statx: Statx, root: int, directory: bytes, sight: bytes) -> bool:
        """Whether all names of a directory are as in its sight."""
        try:
            names = names_of(sight)
        except ValueError:  # the index is spoiled there
            return False
        if len(names) > self._count:
            if len(names) > NAMES_MAX:
                return False
            self._grow(min(2 * len(names), NAMES_MAX))
        try:
            descriptor = os.open(directory or b".", _OPEN | _PATH, dir_fd=root)
        except OSError:
            return False
        try:
            # Nothing is opened or read that this finds, so it does not matter how it was reached.
            answers = map(
                statx, repeat(descriptor), names, repeat(_FLAGS), repeat(_BASIC_STATS), self._slots
            )
            if any(answers):
                return False
        finally:
            os.close(descriptor)
        words = self._words[: len(names) * _STATX_WORDS]
        return sight.endswith(b"".join([words[at::_STATX_WORDS].tobytes() for at in _WORDS]))

    def _grow(self, count: int) -> None:
        self._count = count
        data = bytearray(count * _STATX_BYTES)
        self._words = memoryview(data).cast("Q")
        there = (ctypes.c_char * len(data)).from_buffer(data)
        self._slots = [ctypes.byref(there, at) for at in range(0, len(data), _STATX_BYTES)]


_PATH = getattr(os, "O_PATH", 0)
_FLAGS = _NO_FOLLOW | _NO_AUTOMOUNT


@cache
def _statx() -> Statx | None:
    """The system call; None where there is none. It returns so soon that nobody need be let in."""
    if not sys.platform.startswith("linux"):
        return None
    found: Statx | None = getattr(ctypes.PyDLL(None), "statx", None)
    return found


@cache
def _fstatfs() -> Callable[[int, object], int]:
    """The system call; to look for it takes longer than to call it."""
    found: Callable[[int, object], int] = ctypes.CDLL(None).fstatfs
    return found


def hides_mapped_writes(directory: int) -> bool:
    """Whether a write through `mmap` leaves a file's times as they were on this file system.

    Disk file systems update them in `page_mkwrite`; tmpfs and ramfs have no such step, so that
    only the content of a file tells whether it changed.
    """
    return sys.platform.startswith("linux") and _magic(directory) in _MEMORY


def _is_sound(root: int) -> bool:
    return _magic(root) in _SOUND


def _magic(directory: int) -> int | None:
    """The type of a file system, as in statfs(2)."""
    answer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _fstatfs()(directory, answer) != 0:
        return None
    sort = int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)
    return sort & 0xFFFFFFFF
