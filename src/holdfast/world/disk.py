"""The disk of this machine, by its own system calls."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from holdfast.world.errors import disk_failure
from holdfast.world.ports import FileStatus

_CREATE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL


class SystemDisk:
    """The real thing: what it says is synced survives a power loss, if the device is honest."""

    def open(self, path: Path) -> SystemFile:
        """Open a file that exists, to read only."""
        with _Naming(path):
            return SystemFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path)

    def open_to_write(self, path: Path) -> SystemFile:
        """Open a file that exists, to read and append."""
        with _Naming(path):
            return SystemFile(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC), path)

    def create(self, path: Path, *, mode: int) -> SystemFile:
        """Make a file where nothing is, to read and append; the umask narrows the mode."""
        with _Naming(path):
            return SystemFile(os.open(path, _CREATE | os.O_CLOEXEC, mode), path)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in one step."""
        with _Naming(new):
            os.rename(old, new)

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name, where nothing is."""
        with _Naming(new):
            os.link(old, new)

    def unlink(self, path: Path) -> None:
        """Take a name away."""
        with _Naming(path):
            os.unlink(path)

    def sync_directory(self, path: Path) -> None:
        """Return once the names in a directory survive a power loss."""
        with _Naming(path):
            number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _sync(number)
            finally:
                with suppress(OSError):
                    os.close(number)

    def names(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        with _Naming(path):
            return sorted(os.listdir(path))

    def fresh_word(self) -> str:
        """A random word for a file name; never returned twice."""
        return os.urandom(8).hex()


class SystemFile:
    """A file of this machine, held open.

    What every append of a journal calls is written out, without `_Naming`: next to a fast disk a
    few calls more or less are what one measures.
    """

    def __init__(self, number: int, path: Path) -> None:
        self.number = number
        self._name = os.fspath(path)
        self._naming = _Naming(path)
        self._identity: tuple[int, int] | None = None

    def append(self, data: bytes) -> int:
        """Write at the end and return how much was taken."""
        try:
            return os.write(self.number, data)
        except OSError as error:
            raise disk_failure(error, path=self._name) from error

    def read(self, size: int, *, at: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        with self._naming:
            data = piece = os.pread(self.number, size, at)
            while piece and len(data) < size:  # a signal or a network may cut a read short
                piece = os.pread(self.number, size - len(data), at + len(data))
                data += piece
            return data

    def truncate(self, size: int) -> None:
        """Cut the file to this size."""
        with self._naming:
            os.ftruncate(self.number, size)

    def sync(self) -> None:
        """Return once the file, with all that is known about it, survives a power loss."""
        with self._naming:
            _sync(self.number)

    def sync_data(self) -> None:
        """Return once what was written survives a power loss."""
        try:
            _sync_data(self.number)
        except OSError as error:
            raise disk_failure(error, path=self._name) from error

    def status(self) -> FileStatus:
        """Say which file this is."""
        with self._naming:
            found = os.fstat(self.number)
            return FileStatus(found.st_dev, found.st_ino, found.st_size)

    def is_still(self, size: int) -> bool:
        """Whether its name still leads to this very file, and it is exactly this long."""
        if self._identity is None:
            status = self.status()
            self._identity = status.device, status.inode
        try:
            found = os.stat(self._name)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise disk_failure(error, path=self._name) from error
        return found.st_size == size and (found.st_dev, found.st_ino) == self._identity

    def lock(self) -> bool:
        """Take the file for this opening alone, until it is closed; False if another has it."""
        with self._naming:
            try:
                fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    def close(self) -> None:
        """Close the descriptor; may be called again, and never fails."""
        if self.number >= 0:
            number, self.number = self.number, -1
            with suppress(OSError):  # it is closed all the same, and what matters was synced
                os.close(number)


class _Naming:
    """Turns the errors of system calls into failures that name a path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError):
            raise disk_failure(error, path=str(self._path)) from error


if sys.platform == "darwin":

    def _sync(number: int) -> None:
        # There, fsync leaves the data in the drive's cache; only this empties it.
        fcntl.fcntl(number, fcntl.F_FULLFSYNC)

    _sync_data = _sync
else:
    _sync = os.fsync
    _sync_data = os.fdatasync


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for us alone; raises `OSError`.

    `Path.mkdir` would leave those above it open to everyone.
    """
    for each in (*reversed(directory.parents), directory):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)
