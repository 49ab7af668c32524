"""File systems of one's own, for tests that fill them or cut their power."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SHUTDOWN, _WITHOUT_LOG_FLUSH = 0x8004587D, 2  # FS_IOC_SHUTDOWN of the kernel


def missing_for_mounts() -> str | None:
    """What keeps us from mounting file systems here, if anything does."""
    if os.geteuid() != 0:
        return "only root may mount file systems"
    missing = [tool for tool in ("mount", "umount", "mkfs.ext4") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} missing"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices"
    return None


@contextmanager
def mounted(where: Path, *words: str) -> Iterator[Path]:
    """Mount something for a while; it is gone afterwards, whatever happens."""
    where.mkdir(exist_ok=True)
    subprocess.run(["mount", *words, str(where)], check=True, capture_output=True)
    try:
        yield where
    finally:
        if subprocess.run(["umount", str(where)], check=False, capture_output=True).returncode:
            subprocess.run(["umount", "--lazy", str(where)], check=True, capture_output=True)


def make_ext4(image: Path, *, size_bytes: int) -> None:
    """Make an empty file system in a file."""
    _make(image, size_bytes, "mkfs.ext4", "-q", "-F")


def make_xfs(image: Path, *, size_bytes: int) -> None:
    """Make an empty file system of the other sort in a file; it takes 300 MiB at least."""
    _make(image, size_bytes, "mkfs.xfs", "-q", "-f")


def _make(image: Path, size_bytes: int, *words: str) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    subprocess.run([*words, str(image)], check=True, capture_output=True)


def copied(image: Path, name: str) -> Path:
    """A copy of what is in a file system's file, in a new file, for a mount of its own."""
    copy = image.with_name(name)
    copy.unlink(missing_ok=True)  # what is still mounted somewhere keeps the old one
    subprocess.run(["cp", "--sparse=always", str(image), str(copy)], check=True)
    return copy


def cut_power(where: Path) -> None:
    """Make a file system forget, from one moment to the next, all that is not on its disk."""
    directory = os.open(where, os.O_RDONLY)
    try:
        fcntl.ioctl(directory, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG_FLUSH))
    finally:
        os.close(directory)
