"""File of one output stream, growing or a ring buffer, and the index file.

The length of a growing file tells how much was moved into it when its server was killed. For a ring
the file position of a descriptor does, which the keeper holds too. Before it wraps, a ring equals a
growing file, so that a file can become a ring at any time.

The index stays in memory until there is output: most processes write nothing or end soon, and
creating a file costs more than everything else about them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from holdfast.exec.output_index import CHUNK_BYTES_MAX, RING_UNIT
from holdfast.exec.storage.splice import MOVE_BYTES_MAX, SpliceTarget

# FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE.
_KEEP_SIZE_AND_PUNCH = 3
_LIBC = ctypes.CDLL(None)


def punch(file: int, start: int, end: int) -> None:
    """Punch a hole with `fallocate`, keeping the file length; does nothing if unsupported."""
    if end > start:
        # There is no such call on this system.
        with suppress(AttributeError):
            _LIBC.fallocate(
                file, _KEEP_SIZE_AND_PUNCH, ctypes.c_int64(start), ctypes.c_int64(end - start)
            )


# In which the oldest is dropped: each a sixteenth of the limit.
STEPS = 16

# Between the newest and the oldest: a move, and what is not covered.
_SLACK = 2 * MOVE_BYTES_MAX
_RING_BYTES_MAX = RING_UNIT * (2**16 - 1)

_Result = TypeVar("_Result")


def ring_for(bytes_max: int) -> int:
    """Return the ring size in bytes to retain `bytes_max`; 0 if too large."""
    needed = bytes_max + bytes_max // STEPS + 2 * _SLACK
    ring = -(-needed // RING_UNIT) * RING_UNIT
    return ring if ring <= _RING_BYTES_MAX else 0


def limit_of(ring: int) -> int:
    """Return how many bytes a ring is guaranteed to retain: the inverse of `ring_for`."""
    return (ring - 2 * _SLACK) * STEPS // (STEPS + 1)


def piece_memory() -> memoryview:
    """Return a reusable page-aligned buffer for one chunk; the kernel copies to pages fastest."""
    return memoryview(mmap.mmap(-1, CHUNK_BYTES_MAX))


class StreamFile:
    """Retained output of one stream, addressed by its offset since the start of the process.

    `position` is the descriptor of a ring's position, which the keeper holds too; `close` closes
    it. The file is created on first use.
    """

    def __init__(self, path: str, position: int | None = None) -> None:
        self._path, self._position = path, position
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self._file = -1
        self.is_there = self._file >= 0
        """Whether there is a file."""
        self.size = os.fstat(self._file).st_size if self.is_there else 0
        """How much it has put out in all."""
        self.ring = 0
        self._kept_from = self._punched = 0

    def make(self) -> None:
        if not self.is_there:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.is_there = True

    def place(self) -> SpliceTarget:
        """Return where `splice` writes next; never overwrites retained output."""
        if not self.ring:
            return SpliceTarget(self._file, self.size)
        assert self._position is not None, "whoever moves into a ring has its position"
        offset = self.size % self.ring
        if offset == 0:
            os.lseek(self._position, 0, os.SEEK_SET)
        free = self.ring - _SLACK - (self.size - self._kept_from)
        return SpliceTarget(
            self._position, None, max(0, min(MOVE_BYTES_MAX, free, self.ring - offset))
        )

    def grew(self, count: int) -> None:
        """Count bytes that were moved to that target."""
        self.size += count

    def read(self, memory: memoryview, offset: int) -> int:
        """Read retained output at an offset into memory; returns the number of bytes."""
        return self._with_file(lambda file: self._read(file, memory, offset))

    def drop(self, end: int, step: int) -> None:
        """Drop output before `end`, and punch holes in multiples of `step`.

        Steps are large, because the page cache uses large folios. A ring is overwritten instead.
        """
        self._kept_from = end
        last = end // step * step
        if self.is_there and not self.ring:
            self._with_file(lambda file: punch(file, self._punched, last))
        self._punched = last

    def take_up_ring(self, ring: int, covered: int) -> None:
        """Continue a ring of which `covered` bytes are indexed; its position tells the rest."""
        self.ring, self.size = ring, covered
        if self._position is not None:
            self.size += (os.lseek(self._position, 0, os.SEEK_CUR) - covered) % ring

    def opened_again(self) -> int:
        """Open a new descriptor, with its own file position; the caller closes it."""
        return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def begin_ring(self, ring: int, position: int) -> None:
        """Become a ring; owns the position descriptor from now on."""
        # A former server was killed before it could begin.
        if self._position is not None:
            os.close(self._position)
        self.ring, self._position = ring, position

    def release_descriptors(self) -> None:
        """Close the descriptors: nothing more is written, and each read opens the file."""
        for file in (self._file, -1 if self._position is None else self._position):
            if file >= 0:
                os.close(file)
        self._file, self._position = -1, None

    def close(self) -> None:
        """Close the file; idempotent."""
        self.release_descriptors()
        self.is_there = False

    def _read(self, file: int, memory: memoryview, offset: int) -> int:
        if not self.ring:
            return os.preadv(file, (memory,), offset)
        offset %= self.ring
        left = self.ring - offset  # until it begins anew
        if len(memory) <= left:
            return os.preadv(file, (memory,), offset)
        count = os.preadv(file, (memory[:left],), offset)
        return count + os.preadv(file, (memory[count:],), 0)

    def _with_file(self, access: Callable[[int], _Result]) -> _Result:
        if self._file >= 0:
            return access(self._file)
        file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            return access(file)
        finally:
            os.close(file)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """Where the end of a process without an index file is recorded.

    `note` records exit status and close before any client is notified; `note_rings` that its output
    is in rings, which older servers cannot read.
    """

    note: Callable[[int, bool], None]
    status: int | None = None
    is_closed: bool = False
    note_rings: Callable[[], None] = lambda: None


class IndexFile:
    """The bytes of an index, in memory until it has a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._memory = bytearray()
        # What was written last is mostly read next.
        self._last, self._last_place = b"", 0
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            self._file = -1
        self.is_settled = self._file >= 0
        """Whether it is in its file, where it outlives us."""

    @property
    def size(self) -> int:
        if not self.is_settled:
            return len(self._memory)
        return self._with_file(lambda file: os.fstat(file).st_size)

    def read(self, size: int, place: int) -> bytes:
        """Return the bytes at an offset, fewer at the end."""
        if self.is_settled:
            begin = place - self._last_place
            if begin >= 0 and begin + size <= len(self._last):
                return self._last[begin : begin + size]
            return self._with_file(lambda file: os.pread(file, size, place))
        return bytes(self._memory[place : place + size])

    def write(self, data: bytes, place: int) -> None:
        """Write all bytes at an offset; raises `OSError`."""
        if not self.is_settled:
            self._memory[place : place + len(data)] = data
            return
        self._last = b""
        if self._with_file(lambda file: os.pwrite(file, data, place)) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._last, self._last_place = data, place

    def settle(self) -> None:
        """Create the file and its directory, and write the index to it; idempotent."""
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
        """Punch a hole."""
        if self.is_settled:
            self._with_file(lambda file: punch(file, start, end))

    def release_descriptor(self) -> None:
        """Close the descriptor; from now on each access opens the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def close(self) -> None:
        """Close the file; idempotent."""
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
