"""Make and remove what stands in for a name: in a place, in its draft, or on the machine.

A draft may be seen through several mounts: that of its place, and those of former places that
somebody has not let go of yet. Each remembers what it has seen, and a root that outlives all of its
place leads to the project itself. So the layer is asked what is there, and removing goes through
the place that is held now, or to the layer if there is none.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from holdfast.confine.core.leftovers import MARK
from holdfast.confine.core.protected import stand_in
from holdfast.confine.failures import PlaceLost, SandboxFailed
from holdfast.confine.locking import locked
from holdfast.confine.looking import beneath
from holdfast.confine.place import find
from holdfast.confine.whereabouts import Whereabouts

UNKNOWN: Final = 0  # the number of what was written down, and perhaps made

_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_UNSEEN: Final = (errno.ENOENT, errno.ESTALE)
_SETTLED: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST)
_WHITEOUT: Final = stat.S_IFCHR  # a device of number 0: to an overlay, that something was removed


@dataclass(frozen=True, slots=True)
class Standing:
    """A way to where things stand in: a root if the place is entered, else where it keeps them."""

    where: Whereabouts
    root: int | None

    def make(self, path: str, *, is_file: bool = False) -> int | None:
        """Put something where nothing is; None where that is refused, to the process too.

        For a name of which nothing is known it is a directory, unless a file is wanted.

        Return its number, which is that of the layer: each mount may give another.
        """
        name, content = beneath(path, self.root), stand_in(path)
        if content is None and is_file:
            content = b""
        try:
            if content is None:
                os.mkdir(name, 0o755 | MARK, dir_fd=self.root)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                opened = os.open(name, flags, 0o644 | MARK, dir_fd=self.root)
                try:
                    os.write(opened, content)
                finally:
                    os.close(opened)
        except OSError as error:
            if error.errno in _REFUSED:
                return None
            raise SandboxFailed(reason=f"{path} cannot be guarded ({error.strerror})") from error
        with suppress(OSError):
            name, root = self._kept(path)
            return os.stat(name, dir_fd=root, follow_symlinks=False).st_ino
        return UNKNOWN

    def remove(self, path: str, number: int) -> bool:
        """Remove what we made there; False if that has to be tried again.

        What was changed since, or is someone else's, stays, and is not ours any more.
        """
        try:
            name, root = self._kept(path)
            content = stand_in(path)
            if content is None and _is_file(name, root):
                content = b""
            if _is_ours(name, root, content, number):
                self._take_away(path, content)
        except OSError as error:
            return error.errno in _SETTLED
        return True

    def _kept(self, path: str) -> tuple[str, int | None]:
        layer = self.where.layer(path)
        return (beneath(path, self.root), self.root) if layer is None else (layer, None)

    def _take_away(self, path: str, content: bytes | None) -> None:
        layer = self.where.layer(path)
        if layer is None or self.root is not None:
            try:
                _take_away(beneath(path, self.root), content, self.root)
                return
            except OSError as error:
                if layer is None or error.errno not in _UNSEEN:
                    raise
        _take_away(layer, content, None)
        if os.path.lexists(path):  # as the overlay would: what it covers stays covered
            os.mknod(layer, _WHITEOUT, os.makedev(0, 0))


@contextmanager
def reached(where: Whereabouts) -> Generator[Standing | None]:
    """A way to what stands in, wherever that is seen now; None while there is none.

    What nobody holds cannot be held by anyone until the block ends.
    """
    with ExitStack() as undo:
        yield _reached(where, undo) if where.directory else Standing(where, None)


def _reached(where: Whereabouts, undo: ExitStack) -> Standing | None:
    directory = os.fsdecode(where.directory)
    place = find(directory)
    if place is not None:
        undo.enter_context(place)
        with suppress(PlaceLost):
            if not place.is_covering:  # it leads to the project itself, and the layer is nobody's
                return Standing(where, None)
            root = place.files.open(b"/", os.O_PATH | os.O_DIRECTORY)
            undo.callback(os.close, root)
            return Standing(where, root)
    lock = undo.enter_context(locked(directory))
    is_somebodys = lock is None and os.path.exists(directory)
    return None if is_somebodys else Standing(where, None)


def _is_file(name: str, root: int | None) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=root, follow_symlinks=False).st_mode)


def _is_ours(name: str, root: int | None, content: bytes | None, number: int) -> bool:
    status = os.stat(name, dir_fd=root, follow_symlinks=False)
    if not status.st_mode & MARK or number not in (UNKNOWN, status.st_ino):
        return False
    if content is None:
        return stat.S_ISDIR(status.st_mode)
    return stat.S_ISREG(status.st_mode) and content.startswith(_content(name, root))


def _take_away(name: str, content: bytes | None, root: int | None) -> None:
    if content is None:
        os.rmdir(name, dir_fd=root)
    else:
        os.unlink(name, dir_fd=root)


def _content(name: str, root: int | None) -> bytes:
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=root), "rb") as file:
        return file.read(64)
