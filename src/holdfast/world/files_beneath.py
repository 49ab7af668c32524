"""All access below one directory, by descriptor, such that no link leads out of it.

A path is resolved beneath the root in one piece, or not at all: there is no moment between
checking a path and using it. Links on the way are followed while they stay inside; the last name
is followed only on request. Absolute targets count as outside, wherever they point.

Open what lies beneath a directory, name by name, where no system call does it whole.

No name is ever resolved by the kernel through a link: every step opens one name in a directory
that is already open, links are read and their targets walked in the same way, and `..` goes back
to the directory that we came from. So what others rename meanwhile can make a walk fail, and
never lead it outside.

Open what lies beneath a directory by a way on which there is no link at all.

Whoever changes things in a directory that others write to may not be led elsewhere by a link that
has just appeared. There is nothing to resolve here: a link on the way, or at the end of it, is
something that is not a directory or a file.

Decision: docs/decisions/0015-paths-beneath-a-root.md
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, StrEnum
from io import FileIO
from typing import Self

from holdfast.nouns import PathInvalid, RelativePath
from holdfast.world.errors import disk_failure
from holdfast.world.failures import DiskOccupied, PathEscapes, PathUnfit
from holdfast.world.openat2 import has_openat2, open_beneath, open_past_no_link

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


Opener = Callable[[int, bytes, int, int], int]
"""Opens a path below a directory: `open_beneath`, or `open_by_walking` without openat2."""

_HAS_PATH_DESCRIPTORS = hasattr(os, "O_PATH")
_LOOK = os.O_PATH if _HAS_PATH_DESCRIPTORS else os.O_RDONLY | os.O_NONBLOCK
_UNFIT = {
    errno.ELOOP: "it is a link, or leads through too many",
    errno.EISDIR: "it is a directory",
    errno.ENOTDIR: "something on the way to it, or it itself, is not a directory",
    errno.ENOTEMPTY: "the directory is not empty",
    errno.EINVAL: "that cannot be done with what it is",
    errno.ENXIO: "it is not a file",
}


class OpenMode(Enum):
    """What to open a file for."""

    READ = (os.O_RDONLY, "r")
    UPDATE = (os.O_RDWR, "r+")  # read and write what exists
    CREATE = (os.O_WRONLY | os.O_CREAT | os.O_EXCL, "w")  # refuse what exists
    REPLACE = (os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "w")  # forget what was in it
    APPEND = (os.O_WRONLY | os.O_CREAT | os.O_APPEND, "a")


class FileType(StrEnum):
    """What a directory entry is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True, order=True)
class DirectoryItem:
    """One name in a directory, and what it was when the directory was read."""

    name: bytes
    sort: FileType


class Root:
    """A directory out of which no operation leads; a path that would raises PathEscapes.

    Links on the way are followed while they stay inside. The last name is followed only where
    `follow` asks for it.
    """

    def __init__(self, descriptor: int, *, name: str, opener: Opener | None = None) -> None:
        """Take over a descriptor of the directory; `close` gives it back."""
        self._descriptor = descriptor
        self._name = name
        self._opener = opener or (open_beneath if has_openat2() else open_by_walking)

    @classmethod
    def at(cls, directory: str | os.PathLike[str], *, opener: Opener | None = None) -> Self:
        """Take a directory by a path that is trusted, links and all."""
        name = os.fspath(directory)
        with _named(name):
            return cls(os.open(name, _LOOK | os.O_DIRECTORY), name=name, opener=opener)

    def close(self) -> None:
        """Give the descriptor back; nothing can be reached through this root any more."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(
        self, path: RelativePath, opening: OpenMode, *, follow: bool = False, mode: int = 0o666
    ) -> FileIO:
        """Open a regular file, unbuffered; anything else is refused, and never waited for."""
        flags, access = opening.value
        flags |= os.O_NONBLOCK | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
        with _named(str(path)):
            descriptor = self._resolve(path, flags, mode if flags & os.O_CREAT else 0)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return FileIO(descriptor, access)
            os.close(descriptor)
            raise PathUnfit(path=str(path), reason="it is not a file")

    def stat(self, path: RelativePath, *, follow: bool = False) -> os.stat_result:
        """Say what is there: a link itself, or on request what it leads to."""
        if follow:
            with self._opened(path, _LOOK) as descriptor:
                return os.fstat(descriptor)
        with self._parent(path) as parent:
            return os.stat(path.name, dir_fd=parent, follow_symlinks=False)

    def list(
        self, path: RelativePath | None = None, *, follow: bool = False
    ) -> tuple[DirectoryItem, ...]:
        """Read a directory, sorted by name; None is the root itself."""
        flags = os.O_RDONLY | os.O_DIRECTORY | (0 if follow else os.O_NOFOLLOW)
        with self._opened(path, flags) as directory, os.scandir(directory) as entries:
            return tuple(
                sorted(DirectoryItem(os.fsencode(each.name), _sort(each)) for each in entries)
            )

    def make_directory(
        self, path: RelativePath, *, parents: bool = False, mode: int = 0o777
    ) -> None:
        """Make a new directory; with `parents` make every one that is missing, if any."""
        if not parents:
            with self._parent(path) as parent:
                os.mkdir(path.name, mode, dir_fd=parent)
            return
        for count in range(1, len(path.parts) + 1):
            step = RelativePath(path.parts[:count])
            try:
                self.make_directory(step, mode=mode)
            except DiskOccupied:
                if not stat.S_ISDIR(self.stat(step, follow=True).st_mode):
                    raise

    def remove(self, path: RelativePath) -> None:
        """Remove a file, a link or an empty directory."""
        with self._parent(path) as parent:
            found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(path.name, dir_fd=parent)
            else:
                os.unlink(path.name, dir_fd=parent)

    def rename(self, source: RelativePath, target: RelativePath) -> None:
        """Move whatever is at `source`, in one step, replacing a file or link at `target`."""
        with self._parent(source) as here, self._parent(target) as there:
            try:
                os.rename(source.name, target.name, src_dir_fd=here, dst_dir_fd=there)
            except FileNotFoundError as error:
                raise disk_failure(error, path=str(source)) from error

    def symlink(self, path: RelativePath, *, target: bytes) -> None:
        """Make a link; its target may be anything, and is checked whenever it is followed."""
        if not target or b"\0" in target:
            raise PathInvalid(path=str(path), reason="a link needs a target without a NUL")
        with self._parent(path) as parent:
            os.symlink(target, path.name, dir_fd=parent)

    def readlink(self, path: RelativePath) -> bytes:
        """The target of a link, as it is written."""
        with self._parent(path) as parent:
            return os.readlink(path.name, dir_fd=parent)

    def chmod(self, path: RelativePath, mode: int) -> None:
        """Set the permissions of a file or directory; a link has none."""
        with self._opened(path, _LOOK | os.O_NOFOLLOW) as descriptor:
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise PathUnfit(path=str(path), reason=_UNFIT[errno.ELOOP])
            if _HAS_PATH_DESCRIPTORS:  # such a descriptor can only be changed by its name
                os.chmod(f"/proc/self/fd/{descriptor}", mode)
            else:
                os.fchmod(descriptor, mode)

    def utime(self, path: RelativePath, *, accessed_ns: int, modified_ns: int) -> None:
        """Set the times of a file, a directory or a link itself."""
        with self._parent(path) as parent:
            times = (accessed_ns, modified_ns)
            os.utime(path.name, ns=times, dir_fd=parent, follow_symlinks=False)

    @contextmanager
    def _parent(self, path: RelativePath) -> Generator[int]:
        if path.parent is not None:
            with self._opened(path.parent, _LOOK | os.O_DIRECTORY, shown=path) as descriptor:
                yield descriptor
            return
        with _named(str(path)):
            yield self._descriptor

    @contextmanager
    def _opened(
        self, path: RelativePath | None, flags: int, *, shown: RelativePath | None = None
    ) -> Generator[int]:
        with _named(str(shown or path or self._name)):
            descriptor = self._resolve(path, flags, 0)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    def _resolve(self, path: RelativePath | None, flags: int, mode: int) -> int:
        asked = (self._descriptor, b"." if path is None else path.raw, flags, mode)
        try:
            with suppress(BlockingIOError):  # so much is renamed that the kernel cannot be sure
                return self._opener(*asked)
            return open_by_walking(*asked)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise PathEscapes(path=str(path), root=self._name) from error
            raise


@contextmanager
def _named(path: str) -> Generator[None]:
    """Turn an error of the system into the failure that it is."""
    try:
        yield
    except OSError as error:
        if error.errno in _UNFIT:
            raise PathUnfit(path=path, reason=_UNFIT[error.errno]) from error
        raise disk_failure(error, path=path) from error


def _sort(entry: os.DirEntry[str]) -> FileType:
    if entry.is_symlink():
        return FileType.LINK
    if entry.is_dir(follow_symlinks=False):
        return FileType.DIRECTORY
    return FileType.FILE if entry.is_file(follow_symlinks=False) else FileType.OTHER


_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def open_linkless(root: int, path: bytes, flags: int) -> int:
    """Open what exists at `path` below the directory `root`; raise OSError.

    ELOOP or ENOTDIR means that there is a link.
    """
    if b"/" not in path:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
    if has_openat2():
        return open_past_no_link(root, path, flags | os.O_NOFOLLOW)
    return open_step_by_step(root, path, flags)


def open_step_by_step(root: int, path: bytes, flags: int) -> int:
    """Do what `open_linkless` does where no one call does it."""
    *ways, name = path.split(b"/")
    here = root
    try:
        for way in ways:
            below = os.open(way, _STEP, dir_fd=here)
            if here != root:
                os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        if here != root:
            os.close(here)
