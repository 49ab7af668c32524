"""A workbench on a file system of its own, which can lose its power or be filled."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.cli.planes import eventually
from tests.faults.mounts import copied, cut_power, make_ext4, make_xfs, mounted
from tests.faults.workbench_ground import Ground, in_memory
from tests.faults.workbench_scene import held_below

MAKERS = {"ext4": (make_ext4, 160 << 20), "xfs": (make_xfs, 320 << 20)}
_MOST_BYTES, _BLOCK_BYTES = 1 << 26, 4096


class DiskGround(Ground):
    """A ground on a file system of its own, which can lose its power and be filled."""

    def __init__(self, base: Path, scene: str, system: str) -> None:
        self._mount, self._system = ExitStack(), system
        with ExitStack() as undo:
            undo.callback(self._mount.close)
            super().__init__(base, scene)
            undo.pop_all()

    def prepare(self) -> Path:
        """Make the file system."""
        self.base.mkdir()
        make, size = MAKERS[self._system]
        make(self.base / "disk", size_bytes=size)
        self._have(self.base / "disk")
        return self.base / "mount" / "home"

    def keep(self, name: str) -> None:
        """Remember all that is on the disk."""
        subprocess.run(["sync", "--file-system", self.home.root], check=True)
        self.close()
        self._have(copied(copied(self.base / "disk", name), "disk"))

    def bring(self, name: str) -> None:
        """Have the disk again as it was."""
        self.close()
        self._have(copied(self.base / name, "disk"))

    def cut(self) -> None:
        """Lose what is not on the disk, and start again from a copy of that."""
        cut_power(self.base / "mount")
        for each in held_below(self.home):  # not before: what ends is written down
            os.kill(each.holder.pid, signal.SIGKILL)
        eventually(lambda: not held_below(self.home))
        self._mount.close()
        self._have(copied(self.base / "disk", "found"))

    def fill(self, *, free_bytes: int) -> None:
        """Leave so much room on the disk and no more."""
        with (self.base / "mount" / "filler").open("wb") as file:
            at, more = 0, _MOST_BYTES
            while more >= _BLOCK_BYTES:
                try:
                    os.posix_fallocate(file.fileno(), at, more)
                    at += more
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    more //= 2
            os.ftruncate(file.fileno(), at - free_bytes)
            os.fsync(file.fileno())

    def make_room(self) -> None:
        """Take away what fills the disk."""
        (self.base / "mount" / "filler").unlink()

    def close(self) -> None:
        """Let go of the file system."""
        self.leave()
        self._mount.close()

    def _have(self, image: Path) -> None:
        options = ("-o", "loop,nouuid" if self._system == "xfs" else "loop")
        self._mount.enter_context(mounted(self.base / "mount", *options, str(image)))


@contextmanager
def on_disk(scene: str, system: str) -> Generator[DiskGround]:
    """A ground on a file system of its own; nothing of it stays mounted."""
    with in_memory() as base:
        ground = DiskGround(base / "disk_ground", scene, system)
        try:
            yield ground
        finally:
            ground.close()
