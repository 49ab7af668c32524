"""List an open directory, and find mount points below it.

The C library reports a removed directory as empty, because it maps ENOENT from getdents to the end
of the listing. An overlay also shows this for a directory whose lower directory was removed while a
process uses it: it still has names, so callers must not conclude that they were deleted.
`raise_if_dead` tells the two apart.
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
"""A listed name, its stat line, and the stat result."""


def list_names(directory: int, path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield every name with its path below the root, except staging directories; not sorted."""
    with os.scandir(directory) as entries:
        names = [os.fsencode(entry.name) for entry in entries]
    if not names:
        raise_if_dead(directory)
    for name in names:
        way = path + b"/" + name if path else name
        if not is_stage(way):
            yield name, way


def list_with_stats(directory: int) -> list[Seen]:
    """Return every name with its stat line, sorted, including staging directories."""
    seen: list[Seen] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            # Inlined os.fsencode: its call takes as long as the rest of the loop body.
            seen.append((entry.name.encode("utf-8", "surrogateescape"), stat_line(status), status))
    if not seen:
        raise_if_dead(directory)
    seen.sort(key=_BY_NAME)
    return seen


def mount_points(kind: bytes = b"") -> Iterator[bytes]:
    """Yield mount points of this process, optionally of one kind.

    A kind is a prefix of the fields after the separator in proc_pid_mountinfo(5).
    """
    if sys.platform != "linux":
        return
    for line in _MOUNTS.read_bytes().splitlines():
        where, _, what = line.partition(b" - ")
        if what.startswith(kind):
            yield _ESCAPED.sub(_byte, where.split(b" ")[4])


def mounted_below(directory: int) -> frozenset[bytes]:
    """Return paths of mount points below an open directory, relative to it.

    A bind mount of the same file system has the same st_dev, and rename(2) still fails across it.
    For a directory in another mount namespace, as of an overlay draft, the result is empty: the
    mounts listed for this process do not apply to it.
    """
    if sys.platform != "linux":
        return frozenset()
    top = os.readlink(f"/proc/self/fd/{directory}".encode()).rstrip(b"/") + b"/"
    if not _is_reached(directory, top):
        return frozenset()
    return frozenset(point.removeprefix(top) for point in mount_points() if point.startswith(top))


def _is_reached(directory: int, path: bytes) -> bool:
    """Whether a path leads to an open directory; true if that cannot be determined."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(directory))
    except OSError:
        return True


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8)])


def raise_if_dead(directory: int) -> None:
    """Raise ESTALE for a directory that looks empty because it cannot be listed."""
    if is_dead(directory):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def is_dead(directory: int) -> bool:
    """Whether a directory is linked and cannot be listed."""
    list_raw = _getdents()
    if list_raw is None or not os.fstat(directory).st_nlink:
        return False
    os.lseek(directory, 0, os.SEEK_SET)
    buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
    return list_raw(directory, buffer, _BUFFER_BYTES) < 0 and ctypes.get_errno() == errno.ENOENT


@cache
def _getdents() -> Callable[[int, object, int], int] | None:
    """Return getdents64(2); None where the C library does not export it."""
    found: Callable[[int, object, int], int] | None = getattr(
        ctypes.CDLL(None, use_errno=True), "getdents64", None
    )
    return found
