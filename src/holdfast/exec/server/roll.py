"""Write many short records down in one file, since a new file for each would cost much more.

A file system that has just deleted many files is slow to make new ones: half a millisecond each
was measured where appending a line takes three microseconds.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

_REWRITE_BYTES = 2**20


class Roll:
    """Lines by their keys, on the disk in the order in which they were added.

    Nothing is synced. A line that a kill or a full disk broke off spoils no other one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, bytes] = {}
        self._bytes_max = _REWRITE_BYTES

    def read(self) -> list[bytes]:
        """Every line that was ever added and has not been swept away since."""
        with suppress(FileNotFoundError):
            return [line for line in self._path.read_bytes().split(b"\n") if line]
        return []

    def add(self, key: str, line: bytes) -> None:
        """Add a line to those of a key; raises `OSError` if it does not fit whole."""
        size = self._append(b"\n" + line)
        before = self._lines.get(key)
        self._lines[key] = line if before is None else before + b"\n" + line
        if size > self._bytes_max:
            self.sweep(self._lines)

    def drop(self, key: str, line: bytes) -> None:
        """Let the lines of a key go, after a last one that says so.

        All may still be read until the next sweep. A disk that refuses the last is not asked again.
        """
        if self._lines.pop(key, None) is not None:
            with suppress(OSError):
                self._append(b"\n" + line)

    def sweep(self, lines: dict[str, bytes]) -> None:
        """Keep only these; a disk that refuses is asked again when there is more to sweep."""
        self._lines = dict(lines)
        data = b"".join(b"\n" + line for line in self._lines.values())
        self._bytes_max = max(_REWRITE_BYTES, 2 * len(data))
        beside = self._path.with_suffix(".new")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write(file, data)
            finally:
                os.close(file)
            os.replace(beside, self._path)
        except OSError:
            self._bytes_max += len(data) + _REWRITE_BYTES
            with suppress(OSError):
                beside.unlink()

    def _append(self, data: bytes) -> int:
        """Write at the end, and say how long the file is now."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            _write(file, data)
            return os.fstat(file).st_size
        finally:
            os.close(file)


def _write(file: int, data: bytes) -> None:
    if os.write(file, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
