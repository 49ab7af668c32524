"""Keep the index of one process, in memory until there is output to find.

Most processes say nothing or end soon, and a new file costs more than all else about them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from holdfast.exec.holes import punch

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended that has said nothing, as it is written down beside its index.

    `note` writes it down, with whether all is closed, before anybody is told; `note_rings` that
    its output is in rings, which no server of before can read.
    """

    note: Callable[[int, bool], None]
    status: int | None = None
    is_closed: bool = False
    note_rings: Callable[[], None] = lambda: None


class IndexFile:
    """The bytes of one index, in its file once there is one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._memory = bytearray()
        self._last, self._last_place = b"", 0  # what was written last is mostly read next
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self._file = -1
        self.is_settled = self._file >= 0
        """Whether it is in its file, where it outlives us."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        if not self.is_settled:
            return len(self._memory)
        return self._with_file(lambda file: os.fstat(file).st_size)

    def read(self, size: int, place: int) -> bytes:
        """What stands there, as far as it goes."""
        if self.is_settled:
            begin = place - self._last_place
            if begin >= 0 and begin + size <= len(self._last):
                return self._last[begin : begin + size]
            return self._with_file(lambda file: os.pread(file, size, place))
        return bytes(self._memory[place : place + size])

    def write(self, data: bytes, place: int) -> None:
        """Put this there whole, or raise `OSError`."""
        if not self.is_settled:
            self._memory[place : place + len(data)] = data
            return
        self._last = b""
        if self._with_file(lambda file: os.pwrite(file, data, place)) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._last, self._last_place = data, place

    def settle(self) -> None:
        """Have it in its file from now on, with the directory of that; may be called again."""
        if self.is_settled:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            file = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            Path(self._path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, flags, 0o600)
        if os.pwrite(file, self._memory, 0) != len(self._memory):
            os.close(file)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file, self.is_settled = file, True
        self._memory.clear()

    def punch(self, start: int, end: int) -> None:
        """Give the disk back what stands there."""
        if self.is_settled:
            self._with_file(lambda file: punch(file, start, end))

    def release_descriptor(self) -> None:
        """Close the descriptor; from now on each access opens the file for itself."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def close(self) -> None:
        """Let go of the file; may be called again."""
        self.release_descriptor()
        self.is_settled = False

    def _with_file(self, access: Callable[[int], _Result]) -> _Result:
        if self._file >= 0:
            return access(self._file)
        file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return access(file)
        finally:
            os.close(file)
