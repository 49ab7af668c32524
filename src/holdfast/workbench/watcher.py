"""Have the system say what changes in a project, as a hint of where to look.

A watcher costs one watch for each directory, and nothing while nothing happens. It may miss what is
written through a memory map, so whoever must be certain looks at everything.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple, Self

from holdfast.nouns import PATH_BYTES_MAX, RelativePath
from holdfast.workbench.diff.tree_changes import is_stage

# Read what inotify says: which directory, what happened, and to which name in it.

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
ONLY_DIRECTORIES, NOT_ONCE_UNLINKED = 0x1000000, 0x4000000

WATCHED = (
    MODIFY
    | ATTRIB
    | CLOSE_WRITE
    | MOVED_FROM
    | MOVED_TO
    | CREATE
    | DELETE
    | ONLY_DIRECTORIES
    | NOT_ONCE_UNLINKED
)

_HEAD = Struct("=iIII")


class Notice(NamedTuple):
    """One thing that happened in a watched directory; without a name, to the directory itself."""

    watch: int
    mask: int
    name: bytes

    @property
    def brings_directory(self) -> bool:
        """Whether a directory has come that nobody watches yet, or under another name."""
        return bool(self.mask & IS_DIRECTORY and self.mask & (CREATE | MOVED_TO))


def decode_notices(data: bytes) -> Iterator[Notice]:
    """Every notice in what was read at once; the system gives whole ones only."""
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield Notice(watch, mask, data[at : at + length].rstrip(b"\0"))
        at += length


DIRTY_MAX = 20_000  # of more than that, looking at everything is cheaper
_READ_BYTES = 2**16
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Watcher:
    """Watches one directory with all below it; belongs to one thread, and must be closed."""

    def __init__(self, root: int, queue: int) -> None:
        self._root = root
        self._queue = queue
        self._device = os.fstat(root).st_dev
        self._ways: dict[int, bytes] = {}
        self._dirty: set[bytes] | None = None

    @classmethod
    def at(cls, root: Path) -> Self | None:
        """Watch a directory; None if nobody can, here or with so many directories."""
        if not sys.platform.startswith("linux"):
            return None
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        queue = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if queue < 0:
            os.close(descriptor)
            return None
        watcher = cls(descriptor, queue)
        if not watcher._watch(descriptor, b""):
            watcher.close()
            return None
        return watcher

    def dirty(self) -> frozenset[RelativePath] | None:
        """What may have changed since this was last asked; None is anything, as at first.

        Whoever asks has it: if the look fails that it was for, it must be given back.
        """
        is_whole = self._drain()
        dirty, self._dirty = self._dirty, set()
        if dirty is None or not is_whole or len(dirty) > DIRTY_MAX:
            return None
        return frozenset(RelativePath.of(way) for way in dirty if len(way) <= PATH_BYTES_MAX)

    def give_back(self, dirty: Iterable[RelativePath] | None) -> None:
        """Let what was told be told again."""
        if dirty is None:
            self._dirty = None
        elif self._dirty is not None:
            self._dirty.update(path.raw for path in dirty)

    def close(self) -> None:
        """Stop watching."""
        os.close(self._queue)
        os.close(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _drain(self) -> bool:
        """Take all notices that there are; False if some were lost, or nobody can watch."""
        is_whole = True
        with suppress(BlockingIOError):
            while data := os.read(self._queue, _READ_BYTES):
                for notice in decode_notices(data):
                    is_whole = self._take(notice) and is_whole
        return is_whole

    def _take(self, notice: Notice) -> bool:
        if notice.mask & OVERFLOW:  # also of directories that have come, so all are watched anew
            self._watch(self._root, b"")
            return False
        if notice.mask & IGNORED:
            self._ways.pop(notice.watch, None)
            return True
        above = self._ways.get(notice.watch)
        if above is None or (not above and is_stage(notice.name)):
            return True
        way = above + b"/" + notice.name if above and notice.name else above or notice.name
        if self._dirty is not None and way and len(self._dirty) <= DIRTY_MAX:
            self._dirty.add(way)
        return not notice.brings_directory or self._enter(self._root, way, way)

    def _enter(self, above: int, name: bytes, way: bytes) -> bool:
        """Watch a directory; one that cannot be opened has gone, or nobody can look into it."""
        try:
            descriptor = os.open(name, _OPEN, dir_fd=above)
        except OSError:
            return True
        try:
            return self._watch(descriptor, way)
        finally:
            os.close(descriptor)

    def _watch(self, descriptor: int, way: bytes) -> bool:
        """Watch a directory before what is in it, so that nothing comes unseen in between."""
        if os.fstat(descriptor).st_dev != self._device:
            return True
        path = b"/proc/self/fd/%d" % descriptor
        watch = ctypes.CDLL(None).inotify_add_watch(self._queue, path, WATCHED)
        if watch < 0:
            return False
        self._ways[watch] = way
        with os.scandir(descriptor) as entries:
            names = [os.fsencode(one.name) for one in entries if one.is_dir(follow_symlinks=False)]
        return all(
            self._enter(descriptor, name, way + b"/" + name if way else name)
            for name in names
            if way or not is_stage(name)
        )
