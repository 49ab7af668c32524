"""Open what lies beneath a directory, name by name, where no system call does it whole.

No name is ever resolved by the kernel through a link: every step opens one name in a directory
that is already open, links are read and their targets walked in the same way, and `..` goes back
to the directory that we came from. So what others rename meanwhile can make a walk fail, and
never lead it outside.
"""

from __future__ import annotations

import errno
import os

LINKS_MAX = 40  # as the kernel
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_EXCLUSIVE = os.O_CREAT | os.O_EXCL
_NO_NAMES = {b"", b".", b".."}


def open_by_walking(root: int, path: bytes, flags: int, mode: int) -> int:
    """Open `path` below the directory `root`; raise OSError, EXDEV if it leads out."""
    walk = _Walk(root, path)
    try:
        return walk.open(flags, mode)
    finally:
        walk.close()


class _Walk:
    """One path on its way: the directories that we are in, and the names still to go."""

    def __init__(self, root: int, path: bytes) -> None:
        self._root = root
        self._entered: list[int] = []
        self._ahead = path.split(b"/")[::-1]
        self._links = 0

    def open(self, flags: int, mode: int) -> int:
        """Go through every name, and open the last one."""
        follows = not flags & os.O_NOFOLLOW and flags & _EXCLUSIVE != _EXCLUSIVE
        while True:
            while len(self._ahead) > 1:
                self._go(self._ahead.pop())
            name = self._ahead.pop()
            if name == b"..":
                self._leave()
            name = b"." if name in _NO_NAMES else name
            if not (follows and self._follow(name)):
                return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=self._here)

    def close(self) -> None:
        """Leave every directory."""
        while self._entered:
            os.close(self._entered.pop())

    @property
    def _here(self) -> int:
        return self._entered[-1] if self._entered else self._root

    def _leave(self) -> None:
        if not self._entered:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(self._entered.pop())

    def _go(self, name: bytes) -> None:
        if name == b"..":
            self._leave()
        if name in _NO_NAMES:
            return
        try:
            self._entered.append(os.open(name, _DIRECTORY, dir_fd=self._here))
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP} or not self._follow(name):
                raise

    def _follow(self, name: bytes) -> bool:
        """Put the target of a link ahead of us; answer whether the name is a link at all."""
        try:
            target = os.readlink(name, dir_fd=self._here)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return False
            raise
        self._links += 1
        if self._links > LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        self._ahead.extend(target.split(b"/")[::-1])
        return True
