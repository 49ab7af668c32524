"""Files below a root that a gate stands before: each use of a path is allowed, or refused.

A name says nothing about where it leads, and may lead elsewhere a moment later. So what is there
is opened first, such that nothing can happen by it; the kernel is asked where that is; and what was
opened then, and nothing else, is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from errno import EISDIR

from holdfast.confine.rooted import Reached, Rooted

Gate = Callable[[bytes, bool], None]
"""Raises if the path, which has no links, may not be read, or (if True) not be written."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND
_PATH = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)


class Gated(Reached):
    """The same files as below a root, as far as the gate lets anyone; it owns nothing."""

    def __init__(self, files: Rooted, gate: Gate) -> None:
        self._files, self._gate = files, gate

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""
        try:
            found = self._files.open(path, _PATH)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            return self._made(path, flags, mode)
        return self._passed(found, flags)

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open an absolute path if no part of it is a link; else raise ELOOP."""
        return self._passed(self._files.open_without_links(path, _PATH), flags)

    def resolve(self, path: bytes) -> bytes:
        """The path without links, of something that exists."""
        found = self.open(path, _PATH)
        try:
            return _place_of(found)
        finally:
            os.close(found)

    def _passed(self, found: int, flags: int) -> int:
        """What was found, opened as was asked, if the gate lets it."""
        try:
            self._gate(_place_of(found), bool(flags & _WRITES))
            kept = flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
            return os.open(b"/proc/self/fd/%d" % found, kept | os.O_CLOEXEC)
        finally:
            os.close(found)

    def _made(self, path: bytes, flags: int, mode: int) -> int:
        with self._parent(path, writes=True) as (parent, name):
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=parent)

    @contextmanager
    def _parent(self, path: bytes, *, writes: bool) -> Generator[tuple[int, bytes]]:
        """The directory that something is in, and its name there, if the gate lets it."""
        above, _, name = path.rstrip(b"/").rpartition(b"/")
        parent = self._files.open(above or b"/", _PATH | os.O_DIRECTORY)
        try:
            if name in (b"", b".", b".."):
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            self._gate(_place_of(parent).rstrip(b"/") + b"/" + name, writes)
            yield parent, name
        finally:
            os.close(parent)

    def _let_change(self, parent: int, name: bytes) -> None:
        self._gate(_place_of(parent).rstrip(b"/") + b"/" + name, True)


def _place_of(found: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % found)
