"""Inspect the entry at a path by its content.

Paths are resolved without following links: behind a link there is no entry. An entry that cannot be
read, or keeps changing, is of kind SPECIAL, which equals nothing that was stored.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.scan.file_content import TRIES_MAX, content_id_of, read_xattrs
from holdfast.workbench.scan.stat_cache import is_same
from holdfast.world import open_linkless

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_CLOSED = {errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV}

Seen = tuple[PathEntry, os.stat_result]
"""An entry and its stat result."""


class _DirectoryHandle:
    """Context manager for a descriptor.

    A class, because a generator is too slow for one per file.
    """

    __slots__ = ("_descriptor", "_is_ours")

    def __init__(self, descriptor: int, *, is_ours: bool) -> None:
        self._descriptor = descriptor
        self._is_ours = is_ours

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            os.close(self._descriptor)


def open_directory(
    root: int, path: RelativePath | None, flags: int = DIRECTORY
) -> _DirectoryHandle:
    """Open a directory below an open one, without following links; raises OSError.

    By default with O_PATH; a path of None is the open directory itself.
    """
    if path is None and flags == DIRECTORY:
        return _DirectoryHandle(root, is_ours=False)
    way = b"." if path is None else path.raw
    return _DirectoryHandle(open_linkless(root, way, flags), is_ours=True)


class ParentCache:
    """Cache of the last opened parent directory.

    Only for checks without consequences: changes of the path meanwhile are not noticed.
    """

    def __init__(self, root: int) -> None:
        self._root = self._descriptor = root
        self._parts: tuple[bytes, ...] = ()

    def above(self, path: RelativePath) -> int:
        """Return a descriptor of the parent of a path; raises OSError."""
        parts = path.parts[:-1]
        if parts != self._parts:
            self.close()
            if parts:
                self._descriptor = open_linkless(self._root, b"/".join(parts), DIRECTORY)
            self._parts = parts
        return self._descriptor

    def close(self) -> None:
        """Close the cached descriptor; idempotent."""
        descriptor, self._descriptor, self._parts = self._descriptor, self._root, ()
        if descriptor != self._root:
            os.close(descriptor)


def inspect_path(root: int, path: RelativePath) -> PathEntry | None:
    """Return the entry at a path; None if there is none.

    Raises OSError only for lack of resources or I/O errors.
    """
    seen = inspect_with_stat(root, path.raw)
    return seen and seen[0]


def inspect_with_stat(root: int, path: bytes) -> Seen | None:
    """Like `inspect_path`, with the stat result."""
    for _ in range(TRIES_MAX):
        try:
            descriptor = open_linkless(root, path, _READ)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                return None
            if error.errno == errno.ELOOP or error.errno in _CLOSED:
                return _closed(root, path)
            raise
        try:
            status = os.fstat(descriptor)
            entry = _opened(descriptor, status)
            if entry is not None:
                return entry, status
        finally:
            os.close(descriptor)
    return _closed(root, path)


def _opened(descriptor: int, status: os.stat_result) -> PathEntry | None:
    """Return the entry of a descriptor; None if it changed during the read."""
    mode, mtime_ns = stat.S_IMODE(status.st_mode), status.st_mtime_ns
    if stat.S_ISDIR(status.st_mode):
        return PathEntry(
            EntryKind.DIRECTORY, mode, xattrs=read_xattrs(descriptor), mtime_ns=mtime_ns
        )
    if not stat.S_ISREG(status.st_mode):
        return PathEntry(EntryKind.SPECIAL, mode, mtime_ns=mtime_ns)
    content, xattrs = content_id_of(descriptor, status.st_size), read_xattrs(descriptor)
    if not is_same(os.fstat(descriptor), status):
        return None
    return PathEntry(
        EntryKind.FILE,
        mode,
        content=content,
        xattrs=xattrs,
        size=status.st_size,
        mtime_ns=mtime_ns,
    )


def _closed(root: int, path: bytes) -> Seen | None:
    """Return the entry as far as lstat shows it."""
    way, slash, name = path.rpartition(b"/")
    parent = root
    try:
        if slash:
            parent = open_linkless(root, way, DIRECTORY)
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        mode, mtime_ns = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        if stat.S_ISLNK(status.st_mode):
            with suppress(OSError):  # replaced meanwhile
                target = os.readlink(name, dir_fd=parent)
                return PathEntry(EntryKind.LINK, mode, target=target, mtime_ns=mtime_ns), status
        kind = EntryKind.DIRECTORY if stat.S_ISDIR(status.st_mode) else EntryKind.SPECIAL
        return PathEntry(kind, mode, mtime_ns=mtime_ns), status
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise
    finally:
        if parent != root:
            os.close(parent)
