"""A disk of one's own, which loses its power or has no room, and nobody left on it at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.planes import eventually
from tests.faults.mounts import copied, cut_power, make_ext4
from tests.faults.workbench_ground import in_memory

_PIECE = 1 << 20
_LAST_PIECE = 64


class Disk:
    """A file system with a home on it."""

    def __init__(self, base: Path, where: Path, *, size_bytes: int) -> None:
        self._image, self._where = base / "disk", where
        make_ext4(self._image, size_bytes=size_bytes)
        self._mount(self._image)

    def lose_power(self) -> None:
        """Forget all that is not on the disk, from one moment to the next.

        Nobody is to be ended before: a place that ends has the kernel write down all there is.
        """
        cut_power(self._where)

    def start_again(self) -> None:
        """Have power again, with what was on the disk; nobody may run who ran before."""
        self.leave()
        self._mount(copied(self._image, "found"))

    def fill(self) -> None:
        """Leave no room at all, not even where a last page has some."""
        with (self._where / "filler").open("wb", buffering=0) as file:
            piece = _PIECE
            while piece >= _LAST_PIECE:
                try:
                    file.write(bytes(piece))
                    os.fsync(file.fileno())
                except OSError:
                    piece //= 2

    def make_room(self) -> None:
        """Take away what fills it."""
        (self._where / "filler").unlink()

    def leave(self) -> None:
        """Unmount it; that takes nobody who is on it still."""
        eventually(lambda: _is_run("umount", str(self._where)))

    def abandon(self) -> None:
        """Have it gone, whoever is on it."""
        with suppress(OSError):
            if os.path.ismount(self._where):
                _is_run("umount", "--lazy", str(self._where))

    def _mount(self, image: Path) -> None:
        subprocess.run(
            ["mount", "-o", "loop", str(image), str(self._where)], check=True, capture_output=True
        )


def _is_run(*words: str) -> bool:
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


@contextmanager
def disk_at(where: Path, *, size_bytes: int) -> Generator[Disk]:
    """A new disk at a directory, for the length of the block."""
    with in_memory() as base:
        disk = Disk(base, where, size_bytes=size_bytes)
        try:
            yield disk
            disk.leave()
        finally:
            disk.abandon()
