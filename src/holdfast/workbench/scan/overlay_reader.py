"""Read and adjust the upper layer of an overlay; costs what was written in the draft.

Processes in the draft cannot reach the layer by path, but its contents are theirs: links are not
followed, and entries that vanish during the scan are skipped.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from holdfast.nouns import PATH_BYTES_MAX
from holdfast.workbench.coverage import DEPTH_MAX
from holdfast.workbench.diff.tree_changes import LayerEntry
from holdfast.workbench.scan.directory import list_names
from holdfast.workbench.scan.file_content import raise_resource_error
from holdfast.world import open_linkless

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPAQUE = "user.overlay.opaque"
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


def listed(layer: int) -> Iterator[LayerEntry]:
    """Yield every entry of the layer, except staging directories."""
    yield from _below(layer, b"")


def make_opaque(layer: int, path: bytes) -> None:
    """Mark a layer directory opaque: the lower directory no longer shows through."""
    directory = open_linkless(layer, path, _OPEN)
    try:
        os.setxattr(directory, _OPAQUE, b"y")
    finally:
        os.close(directory)


def copy_up(root: int, path: bytes) -> None:
    """Make the kernel copy a path, and all below it, into the layer.

    `root` is the overlay's root.
    """
    name = os.path.basename(path)
    parent = open_linkless(root, os.path.dirname(path), _OPEN) if b"/" in path else os.dup(root)
    try:
        _copy_up(parent, name)
    finally:
        os.close(parent)


def _copy_up(parent: int, name: bytes) -> None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        times = (status.st_atime_ns, status.st_mtime_ns)
        # Setting the times a file already has triggers copy-up without changing anything else.
        os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            return
        directory = os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        if error.errno in _GONE:
            return
        raise
    try:
        for each, _ in list_names(directory, name):
            _copy_up(directory, each)
    finally:
        os.close(directory)


def _below(directory: int, path: bytes) -> Iterator[LayerEntry]:
    for name, way in list_names(directory, path):
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(status.st_mode):
            yield from _directory(directory, name, way, status)
        else:
            yield LayerEntry(way, status.st_mode, stamp=_stamp(status))


def _directory(
    parent: int, name: bytes, way: bytes, status: os.stat_result
) -> Iterator[LayerEntry]:
    found = LayerEntry(way, status.st_mode, stamp=_stamp(status))
    if way.count(b"/") + 1 >= DEPTH_MAX or len(way) > PATH_BYTES_MAX:
        yield found
        return
    try:
        opened = os.open(name, _OPEN, dir_fd=parent)
    except OSError as error:
        raise_resource_error(error, way)
        if error.errno not in _GONE:
            yield found._replace(is_closed=True)
        return
    try:
        yield found._replace(is_opaque=_is_opaque(opened))
        yield from _below(opened, way)
    finally:
        os.close(opened)


def _is_opaque(directory: int) -> bool:
    try:
        return os.getxattr(directory, _OPAQUE) == b"y"
    except OSError as error:
        if error.errno in {errno.ENODATA, errno.ENOTSUP}:
            return False
        raise


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_ctime_ns, status.st_size
