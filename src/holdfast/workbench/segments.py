"""Objects on disk: files that only grow, of which a tear spoils nothing but itself.

Whatever is appended becomes durable together, by one sync, in `commit`; until then `abandon` takes
it back. A segment is never repaired: after a crash its end may hold garbage, and what is appended
later stands behind that. A reader that meets garbage looks for the mark of the next record.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from holdfast.failures import Failure
from holdfast.workbench.core.record import (
    HEAD_BYTES,
    MARK_BYTES,
    SEGMENT_HEAD_BYTES,
    Codec,
    Head,
    ObjectSort,
    is_intact,
    name_of,
    read_head,
    read_segment_head,
    segment_head,
    write_head,
)
from holdfast.workbench.failures import ObjectDamaged
from holdfast.world import Chance, Disk, OpenFile, write_all
from holdfast.world.failures import StoreReadOnly

SEGMENT_BYTES_MAX = 512 * 2**20
_WRITE_BYTES = 2**20
_SEARCH_BYTES = 2**20
_OPEN_MAX = 32
_SMALL_BYTES = 64  # what is as small as a head is not worth compressing


class Location(NamedTuple):
    """Where an object is."""

    segment: int
    offset: int
    stored_bytes: int


class Found(NamedTuple):
    """An intact record, met when a segment was read from end to end."""

    name: bytes
    sort: ObjectSort
    location: Location


class _Reading(NamedTuple):
    file: OpenFile
    mark: bytes | None


class Segments:
    """All objects of one store; belongs to the one who holds the lock of the store."""

    def __init__(self, disk: Disk, directory: Path, chance: Chance) -> None:
        self._disk = disk
        self._directory = directory
        self._chance = chance
        self._compressor = ZstdCompressor(level=1, write_content_size=False)
        self._decompressor = ZstdDecompressor()
        self._reading: dict[int, _Reading] = {}
        self._writing: OpenFile | None = None
        self._number, self._mark = max(self.numbers(), default=0), b""
        self._committed: dict[int, int] = {}
        self._end = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._is_new = False
        self._stopped_by: str | None = None

    @property
    def committed(self) -> dict[int, int]:
        """How far each segment that was written to is committed, by its number."""
        return dict(self._committed)

    def numbers(self) -> list[int]:
        """The numbers of all segments, in order."""
        names = (Path(name) for name in self._disk.names(self._directory))
        return sorted(int(name.stem) for name in names if _is_segment(name))

    def path(self, number: int) -> Path:
        """Where a segment is."""
        return self._directory / f"{number:06}.seg"

    def size(self, number: int) -> int:
        """How long a segment is on disk."""
        return self._opened(number).file.status().size

    def append(self, sort: ObjectSort, name: bytes, data: bytes) -> Location:
        """Put an object at the end; it is kept from the next commit on, or not at all."""
        self._begin()
        codec, stored = self._packed(data)
        head = write_head(self._mark, sort, codec, name=name, raw_bytes=len(data), stored=stored)
        location = Location(self._number, self._end, len(stored))
        self._waiting += (head, stored)
        self._waiting_bytes += HEAD_BYTES + len(stored)
        self._end += HEAD_BYTES + len(stored)
        if self._waiting_bytes >= _WRITE_BYTES:
            self._flush()
        return location

    def commit(self) -> None:
        """Return once all that was appended survives a power loss; one sync for all of it."""
        if self._writing is None or self._end == self._committed[self._number]:
            return
        self._flush()
        try:
            self._writing.sync_data()
            if self._is_new:
                self._disk.sync_directory(self._directory)
        except Failure as failure:  # nobody knows any more what is on disk
            self._stopped_by = failure.code
            raise
        self._is_new = False
        self._committed[self._number] = self._end

    def abandon(self) -> None:
        """Take back what was appended since the last commit; never fails."""
        self._waiting, self._waiting_bytes = [], 0
        if self._writing is None:
            return
        if self._is_new:
            self._uncreate()
        elif self._end != self._committed[self._number]:
            try:
                self._writing.truncate(self._committed[self._number])
                self._end = self._committed[self._number]
            except Failure:  # then it stays as garbage, and what comes stands behind it
                self._close_writing()

    def read(self, name: bytes, location: Location) -> tuple[ObjectSort, bytes]:
        """The object of this name, just as it was put; raise ObjectDamaged if it is not."""
        if location.segment == self._number and self._waiting:
            self._flush()
        file, mark = self._opened(location.segment)
        record = file.read(HEAD_BYTES + location.stored_bytes, at=location.offset)
        head, stored = read_head(record, mark or bytes(MARK_BYTES)), record[HEAD_BYTES:]
        if head is None or not is_intact(record, head, stored):
            raise self._damaged(name, location, "its checksum differs")
        try:
            data = self._unpacked(head, stored)
        except ZstdError as error:
            raise self._damaged(name, location, "it cannot be decompressed") from error
        if head.name != name or name_of(head.sort, data) != name:
            raise self._damaged(name, location, "it is another object")
        return head.sort, data

    def head(self, name: bytes, location: Location) -> Head:
        """What stands before an object; its bytes are not looked at."""
        file, mark = self._opened(location.segment)
        head = read_head(file.read(HEAD_BYTES, at=location.offset), mark or bytes(MARK_BYTES))
        if head is None or head.name != name:
            raise self._damaged(name, location, "something else is there")
        return head

    def scan(self, number: int, start: int) -> Generator[Found]:
        """Every intact record that begins at `start` or later; what is between them is skipped."""
        file, mark = self._opened(number)
        if mark is None:
            return
        at, size = max(start, SEGMENT_HEAD_BYTES), file.status().size
        while at < size:
            head_bytes = file.read(HEAD_BYTES, at=at)
            head = read_head(head_bytes, mark)
            if head is not None and at + HEAD_BYTES + head.stored_bytes <= size:
                stored = file.read(head.stored_bytes, at=at + HEAD_BYTES)
                if is_intact(head_bytes, head, stored):
                    yield Found(head.name, head.sort, Location(number, at, len(stored)))
                    at += HEAD_BYTES + len(stored)
                    continue
            at = _next_mark(file, mark, at + 1, size)

    def sync(self, number: int) -> None:
        """Return once all that a segment holds survives a power loss."""
        file = self._disk.open_to_write(self.path(number))
        try:
            file.sync_data()
            self._disk.sync_directory(self._directory)
        finally:
            file.close()

    def close(self) -> None:
        """Let go of all files; what was not committed is taken back."""
        self.abandon()
        self._close_writing()
        for reading in self._reading.values():
            reading.file.close()
        self._reading.clear()

    def _begin(self) -> None:
        """Have a segment to write to that has room."""
        if self._stopped_by is not None:
            raise StoreReadOnly(path=str(self.path(self._number)), cause=self._stopped_by)
        if self._writing is not None and self._end < SEGMENT_BYTES_MAX:
            return
        if self._writing is None and self._number and self._resume():
            return
        self.commit()
        self._close_writing()
        self._create(self._number + 1)

    def _resume(self) -> bool:
        """Go on with the newest segment, unless it is full or none of ours."""
        mark, size = self._opened(self._number).mark, self.size(self._number)
        if mark is None or size >= SEGMENT_BYTES_MAX:
            return False
        self._writing = self._disk.open_to_write(self.path(self._number))
        self._mark, self._end, self._committed[self._number] = mark, size, size
        return True

    def _create(self, number: int) -> None:
        self._writing = self._disk.create(self.path(number), mode=0o600)
        self._number, self._mark = number, self._chance.draw(MARK_BYTES)
        self._is_new = True
        self._committed[number], self._end = 0, SEGMENT_HEAD_BYTES
        self._waiting, self._waiting_bytes = [segment_head(self._mark)], SEGMENT_HEAD_BYTES

    def _uncreate(self) -> None:
        """Take a segment back that nothing was committed to; if it stays, it is passed over."""
        self._close_writing()
        self._is_new = False
        del self._committed[self._number]
        if (reading := self._reading.pop(self._number, None)) is not None:
            reading.file.close()
        with suppress(Failure):
            self._disk.unlink(self.path(self._number))
            self._number -= 1

    def _flush(self) -> None:
        assert self._writing is not None
        data, self._waiting, self._waiting_bytes = b"".join(self._waiting), [], 0
        write_all(self._writing, data, path=self.path(self._number))

    def _close_writing(self) -> None:
        if self._writing is not None:
            self._writing.close()
            self._writing = None

    def _opened(self, number: int) -> _Reading:
        reading = self._reading.get(number)
        if reading is None:
            if len(self._reading) >= _OPEN_MAX:
                self._reading.pop(next(iter(self._reading))).file.close()
            file = self._disk.open(self.path(number))
            reading = _Reading(file, read_segment_head(file.read(SEGMENT_HEAD_BYTES, at=0)))
            self._reading[number] = reading
        return reading

    def _packed(self, data: bytes) -> tuple[Codec, bytes]:
        if len(data) > _SMALL_BYTES:
            packed = self._compressor.compress(data)
            if len(packed) < len(data) - len(data) // 16:
                return Codec.ZSTD, packed
        return Codec.RAW, data

    def _unpacked(self, head: Head, stored: bytes) -> bytes:
        if head.codec is Codec.RAW:
            return stored
        return self._decompressor.decompress(stored, max_output_size=head.raw_bytes)

    def _damaged(self, name: bytes, location: Location, reason: str) -> ObjectDamaged:
        return ObjectDamaged(
            object=name.hex(),
            path=str(self.path(location.segment)),
            offset=location.offset,
            reason=reason,
        )


def _is_segment(name: Path) -> bool:
    return name.suffix == ".seg" and name.stem.isascii() and name.stem.isdigit()


def _next_mark(file: OpenFile, mark: bytes, at: int, size: int) -> int:
    while at < size:
        found = file.read(_SEARCH_BYTES + len(mark), at=at).find(mark)
        if found >= 0:
            return at + found
        at += _SEARCH_BYTES
    return size
