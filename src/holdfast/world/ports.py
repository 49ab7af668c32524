"""What the durable parts need from a disk."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class FileStatus(NamedTuple):
    """Which file this is, whatever its name, and how long it is."""

    device: int
    inode: int
    size: int


class OpenFile(Protocol):
    """A file held open; every complaint names its path."""

    def append(self, data: bytes) -> int:
        """Write at the end and return how much was taken: all of it, or less."""
        ...

    def read(self, size: int, *, at: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to this size."""
        ...

    def sync(self) -> None:
        """Return once the file, with all that is known about it, survives a power loss."""
        ...

    def sync_data(self) -> None:
        """Return once what was written survives a power loss."""
        ...

    def status(self) -> FileStatus:
        """Say which file this is."""
        ...

    def is_still(self, size: int) -> bool:
        """Whether its name still leads to this very file, and it is exactly this long."""
        ...

    def lock(self) -> bool:
        """Take the file for this opening alone, until it is closed; False if another has it."""
        ...

    def close(self) -> None:
        """Close the descriptor; may be called again, and never fails."""
        ...


class Disk(Protocol):
    """Files and directories whose changes last only once they are synced."""

    def open(self, path: Path) -> OpenFile:
        """Open a file that exists, to read only."""
        ...

    def open_to_write(self, path: Path) -> OpenFile:
        """Open a file that exists, to read and append."""
        ...

    def create(self, path: Path, *, mode: int) -> OpenFile:
        """Make a file where nothing is, to read and append; the umask narrows the mode."""
        ...

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in one step; what had that name before is gone."""
        ...

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name, where nothing is."""
        ...

    def unlink(self, path: Path) -> None:
        """Take a name away."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Return once the names in a directory survive a power loss."""
        ...

    def names(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        ...

    def fresh_word(self) -> str:
        """A random word for a file name; never returned twice."""
        ...
