"""List what is in a directory that is open, and where something is mounted below it.

The C library takes a directory that cannot be listed because it was removed for an empty one. In an
overlay that is also what becomes of a directory whose lower one was removed while something inside
uses it: it still has names, and nobody may conclude that they are gone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path

from holdfast.workbench.diff.tree_changes import is_stage
from holdfast.workbench.scan.stat_cache import stat_line

_BY_NAME = itemgetter(0)
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_BUFFER_BYTES = 4096

Seen = tuple[bytes, bytes, os.stat_result]
"""A name in a directory as it was listed: the name, its line, and what the line is made of."""


def list_names(directory: int, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every name as of now in the directory at a path but what is ours, and what path it makes."""
    with os.scandir(directory) as entries:
        names = [os.fsencode(entry.name) for entry in entries]
    if not names:
        raise_if_dead(directory)
    for name in names:
        way = path + b"/" + name if path else name
        if not is_stage(way):
            yield name, way


def list_with_stats(directory: int) -> list[Seen]:
    """Every name as of now in a directory, also what is ours, sorted."""
    seen: list[Seen] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            # As os.fsencode, which takes as long as the rest of this.
            seen.append((entry.name.encode("utf-8", "surrogateescape"), stat_line(status), status))
    if not seen:
        raise_if_dead(directory)
    seen.sort(key=_BY_NAME)
    return seen


def mount_points(kind: bytes = b"") -> Iterator[bytes]:
    """Where something is mounted for this process; with a kind, only mounts of that kind.

    A kind is the beginning of what proc_pid_mountinfo(5) says after the separator.
    """
    if sys.platform != "linux":
        return
    for line in _MOUNTS.read_bytes().splitlines():
        where, _, what = line.partition(b" - ")
        if what.startswith(kind):
            yield _ESCAPED.sub(_byte, where.split(b" ")[4])


def mounted_below(directory: int) -> frozenset[bytes]:
    """The paths below an open directory where something is mounted, relative to it.

    A bind mount of the same file system has the same `st_dev`, and yet no rename leads across it.
    A directory of another mount namespace, as that of an overlay draft, has none that are known
    here: its path may be the same as that of a directory with mounts.
    """
    if sys.platform != "linux":
        return frozenset()
    top = os.readlink(f"/proc/self/fd/{directory}".encode()).rstrip(b"/") + b"/"
    if not _is_reached(directory, top):
        return frozenset()
    return frozenset(point.removeprefix(top) for point in mount_points() if point.startswith(top))


def _is_reached(directory: int, path: bytes) -> bool:
    """Whether a path leads to an open directory; also if that cannot be found out."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(directory))
    except OSError:
        return True


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8)])


def raise_if_dead(directory: int) -> None:
    """Raise OSError with ESTALE for a directory that is there, looks empty and cannot be listed."""
    if is_dead(directory):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def is_dead(directory: int) -> bool:
    """Whether a directory is there and cannot be listed."""
    list_raw = _getdents()
    if list_raw is None or not os.fstat(directory).st_nlink:
        return False
    os.lseek(directory, 0, os.SEEK_SET)
    buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
    return list_raw(directory, buffer, _BUFFER_BYTES) < 0 and ctypes.get_errno() == errno.ENOENT


@cache
def _getdents() -> Callable[[int, object, int], int] | None:
    """The system call itself; None where the C library does not offer it."""
    found: Callable[[int, object, int], int] | None = getattr(
        ctypes.CDLL(None, use_errno=True), "getdents64", None
    )
    return found
