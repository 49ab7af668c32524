"""Where a session's processes run and its files are: for now plainly this machine.

A session is bound to one place when it begins, and never leaves it. Whatever it asks of files is
resolved by the place, from the descriptor of its root, so that a place with a root of its own
needs no other change than to be another one of these.
"""

from __future__ import annotations

import os
import stat
import sys
from errno import ELOOP

_LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)


class Place:
    """The machine itself: every absolute path means what it means to everyone."""

    name = "plain"

    def __init__(self) -> None:
        self._root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)

    def close(self) -> None:
        """Give the root back; nothing can be reached through this place any more."""
        os.close(self._root)

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""
        return os.open(_below(path), flags | os.O_CLOEXEC, mode, dir_fd=self._root)

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open an absolute path if no part of it is a link; else raise ELOOP."""
        directory = os.dup(self._root)
        *parents, name = _below(path).split(b"/")
        try:
            for parent in parents:
                step = os.open(parent, _LOOK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
                os.close(directory)
                directory = step
                if stat.S_ISLNK(os.fstat(directory).st_mode):
                    raise OSError(ELOOP, os.strerror(ELOOP))
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)

    def look(self, path: bytes, *, follow: bool = True) -> os.stat_result:
        """Say what is there: on request the link itself."""
        return os.stat(_below(path), dir_fd=self._root, follow_symlinks=follow)

    def names(self, path: bytes) -> list[bytes]:
        """The names in a directory, sorted."""
        directory = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return sorted(os.fsencode(name) for name in os.listdir(directory))
        finally:
            os.close(directory)

    def resolve(self, path: bytes) -> bytes:
        """The path without links, of something that exists."""
        if sys.platform != "linux":
            return os.path.realpath(path, strict=True)
        found = self.open(path, _LOOK)
        try:
            return os.readlink(b"/proc/self/fd/%d" % found)
        finally:
            os.close(found)

    def make_directory(self, path: bytes) -> None:
        """Make one new directory."""
        os.mkdir(_below(path), dir_fd=self._root)

    def remove(self, path: bytes, *, is_directory: bool) -> None:
        """Remove a file or link, or an empty directory."""
        if is_directory:
            os.rmdir(_below(path), dir_fd=self._root)
        else:
            os.unlink(_below(path), dir_fd=self._root)

    def read_link(self, path: bytes) -> bytes:
        """The target of a link, as it is written."""
        return os.readlink(_below(path), dir_fd=self._root)

    def make_link(self, path: bytes, *, target: bytes) -> None:
        """Make a link."""
        os.symlink(target, _below(path), dir_fd=self._root)


def _below(path: bytes) -> bytes:
    """The path as seen from the root."""
    return path.lstrip(b"/") or b"."
