"""The file of one stream: it grows, or it is a ring in which the newest stands.

A file that grows says by its length how much was moved into it when its server was killed. A ring
does not; there the position of a descriptor does, which the keeper holds too. Up to its first
turn a ring is the same as a file that grows, so that one can become the other at any time.

Keep the index of one process, in memory until there is output to find.

Most processes say nothing or end soon, and a new file costs more than all else about them.
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

# Give the disk back what stands in a part of a file, whose length stays.

_KEEP_SIZE_AND_PUNCH = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_LIBC = ctypes.CDLL(None)


def punch(file: int, start: int, end: int) -> None:
    """Punch a hole there; where that cannot be done, it is only not read."""
    if end > start:
        with suppress(AttributeError):  # there is no such call on this system
            _LIBC.fallocate(
                file, _KEEP_SIZE_AND_PUNCH, ctypes.c_int64(start), ctypes.c_int64(end - start)
            )


STEPS = 16  # in which the oldest is dropped: each a sixteenth of the limit

_SLACK = 2 * MOVE_BYTES_MAX  # between the newest and the oldest: a move, and what is not covered
_RING_BYTES_MAX = RING_UNIT * (2**16 - 1)

_Result = TypeVar("_Result")


def ring_for(bytes_max: int) -> int:
    """How long a ring must be to keep so many bytes, as they are dropped; 0 if none can be."""
    needed = bytes_max + bytes_max // STEPS + 2 * _SLACK
    ring = -(-needed // RING_UNIT) * RING_UNIT
    return ring if ring <= _RING_BYTES_MAX else 0


def limit_of(ring: int) -> int:
    """How many bytes a ring can keep for sure: what `ring_for` was asked for, or a little more."""
    return (ring - 2 * _SLACK) * STEPS // (STEPS + 1)


def piece_memory() -> memoryview:
    """Memory to read a piece of output into, again and again.

    It begins with a page, where the kernel copies to fastest; what is not used is not there.
    """
    return memoryview(mmap.mmap(-1, CHUNK_BYTES_MAX))


class StreamFile:
    """What one stream has put out, counted from its beginning, as far as it is kept.

    `position` is a descriptor of a ring, as the keeper holds it; whoever made this closes it by
    `close`. A new file costs much, and many streams never say anything: it is made when needed.
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
        """Make the file if it is missing."""
        if not self.is_there:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.is_there = True

    def place(self) -> SpliceTarget:
        """Where its next output goes; what is still kept is never written over."""
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
        """Learn that output was moved to that place."""
        self.size += count

    def read(self, memory: memoryview, offset: int) -> int:
        """Fill memory with what it has put out from there on, which must be kept.

        Returns how much that is.
        """
        return self._with_file(lambda file: self._read(file, memory, offset))

    def drop(self, end: int, step: int) -> None:
        """Keep nothing before this any more, and give what is before a step back to the disk.

        In large steps, for the page cache is kept in large pieces, too. A ring is written over.
        """
        self._kept_from = end
        last = end // step * step
        if self.is_there and not self.ring:
            self._with_file(lambda file: punch(file, self._punched, last))
        self._punched = last

    def take_up_ring(self, ring: int, covered: int) -> None:
        """Go on with a ring of which so much was covered; the rest is told by its position."""
        self.ring, self.size = ring, covered
        if self._position is not None:
            self.size += (os.lseek(self._position, 0, os.SEEK_CUR) - covered) % ring

    def opened_again(self) -> int:
        """A new descriptor, with a position of its own; the caller closes it."""
        return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def begin_ring(self, ring: int, position: int) -> None:
        """Be a ring from now on, and own the descriptor of its position, which is our size."""
        if self._position is not None:  # a former server was killed before it could begin
            os.close(self._position)
        self.ring, self._position = ring, position

    def release_descriptors(self) -> None:
        """Close the descriptors: nothing more is moved here, and each read opens the file."""
        for file in (self._file, -1 if self._position is None else self._position):
            if file >= 0:
                os.close(file)
        self._file, self._position = -1, None

    def close(self) -> None:
        """Let go of the file; may be called again."""
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
