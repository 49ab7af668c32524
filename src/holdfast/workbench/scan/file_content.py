"""Read one directory entry: its metadata and content as of one moment.

Files are opened relative to their directory and links are not followed. A file that changes during
the read is read again; one that keeps changing is recorded as not covered.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator

from holdfast.workbench.coverage import covers_xattr
from holdfast.workbench.model import UncoveredReason
from holdfast.workbench.objects.formats import (
    PIECE_BYTES,
    WHOLE_BYTES_MAX,
    Node,
    NodeKind,
    ObjectKind,
    name_of,
    split_content,
    uncovered,
)
from holdfast.workbench.objects.objects import Objects
from holdfast.workbench.scan.stat_cache import is_same
from holdfast.world import disk_failure

TRIES_MAX = 3
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OF_THIS_PROCESS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_ANOTHER_NOW = {errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EINVAL}

Xattrs = tuple[tuple[bytes, bytes], ...]


class _Moved(Exception):
    """The file changed during the read."""


def read_node(
    objects: Objects, directory: int, name: bytes, status: os.stat_result
) -> tuple[Node | None, os.stat_result]:
    """Store a file or link; return its node and stat result, with None as node if it is gone.

    `status` is the stat result from the directory listing.
    """
    for _ in range(TRIES_MAX):
        try:
            if stat.S_ISLNK(status.st_mode):
                return _link(directory, name, status), status
            if stat.S_ISREG(status.st_mode):
                return _file(objects, directory, name, status), status
            # Replaced by another type.
            break
        except _Moved:
            pass
        except OSError as error:
            if error.errno == errno.ENOENT:
                return None, status
            raise_resource_error(error, name)
            if error.errno not in _ANOTHER_NOW:
                return uncovered(name, UncoveredReason.UNREADABLE), status
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None, status
    return uncovered(name, UncoveredReason.CHANGING), status


def content_id_of(descriptor: int, size: int) -> bytes:
    """Hash an open file as the store would name it, without storing it.

    If the file changes meanwhile the hash is of a mixture; callers compare the stat result
    afterwards.
    """
    if size <= WHOLE_BYTES_MAX:
        data = os.pread(descriptor, size, 0) if size else b""
        if len(data) == size:
            # No second read for EOF: it costs as much as the hash.
            return name_of(ObjectKind.BLOB, data)
    return split_content(_read_all(descriptor), name_of)[0]


def read_xattrs(descriptor: int) -> Xattrs:
    """Return the extended attributes that checkpoints cover, sorted."""
    try:
        names = os.listxattr(descriptor)
        if not names:
            return ()
        wanted = sorted(raw for name in names if covers_xattr(raw := os.fsencode(name)))
        return tuple((name, os.getxattr(descriptor, name)) for name in wanted)
    except OSError as error:
        if error.errno in {errno.ENOTSUP, errno.ENODATA, errno.EPERM, errno.EACCES}:
            # Unsupported here, or removed between the two calls.
            return ()
        raise


def raise_resource_error(error: OSError, path: bytes) -> None:
    """Raise for EMFILE, ENFILE and ENOMEM: they say nothing about the file itself."""
    if error.errno in _OF_THIS_PROCESS:
        raise disk_failure(error, path=os.fsdecode(path)) from error


def _link(directory: int, name: bytes, status: os.stat_result) -> Node:
    target = os.readlink(name, dir_fd=directory)
    mode = stat.S_IMODE(status.st_mode)
    return Node(name, NodeKind.LINK, mode, 0, status.st_mtime_ns, target)


def _file(objects: Objects, directory: int, name: bytes, status: os.stat_result) -> Node:
    descriptor = os.open(name, _OPEN, dir_fd=directory)
    try:
        if status.st_size <= WHOLE_BYTES_MAX:
            content = _whole(objects, descriptor, status)
        else:
            content = objects.put_pieces(_pieces(descriptor, status.st_size))
        xattrs = read_xattrs(descriptor)
        if not is_same(os.fstat(descriptor), status):
            raise _Moved
    finally:
        os.close(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    return Node(name, NodeKind.FILE, mode, status.st_size, status.st_mtime_ns, content, xattrs)


def _whole(objects: Objects, descriptor: int, status: os.stat_result) -> bytes:
    data = os.read(descriptor, status.st_size) if status.st_size else b""
    while len(data) < status.st_size:
        more = os.read(descriptor, status.st_size - len(data))
        if not more:
            raise _Moved
        data += more
    return objects.put(ObjectKind.BLOB, data)


def _read_all(descriptor: int) -> Generator[bytes]:
    at = 0
    while piece := os.pread(descriptor, PIECE_BYTES, at):
        yield piece
        at += len(piece)


def _pieces(descriptor: int, size: int) -> Generator[bytes]:
    for at in range(0, size, PIECE_BYTES):
        wanted = min(PIECE_BYTES, size - at)
        piece = os.pread(descriptor, wanted, at)
        while len(piece) < wanted:
            more = os.pread(descriptor, wanted - len(piece), at + len(piece))
            if not more:
                raise _Moved
            piece += more
        yield piece
