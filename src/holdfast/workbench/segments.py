"""Objects on disk: files that only grow, of which a tear spoils nothing but itself.

Whatever is appended becomes durable together, by one sync, in `commit`; until then `abandon` takes
it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from zstandard import ZstdCompressionParameters, ZstdCompressor

from holdfast.failures import Failure
from holdfast.workbench.core.bundle import (
    BUNDLE_BYTES,
    SMALL_BYTES_MAX,
    encode_bundle,
    rooms,
)
from holdfast.workbench.core.record import (
    HEAD_BYTES,
    MARK_BYTES,
    SEGMENT_HEAD_BYTES,
    Codec,
    ObjectSort,
    name_of,
    segment_head,
    write_head,
)
from holdfast.workbench.segment_files import Location, SegmentFiles
from holdfast.world import Chance, Disk, OpenFile, write_all
from holdfast.world.failures import StoreReadOnly

SEGMENT_BYTES_MAX = 512 * 2**20
_WRITE_BYTES = 2**20
_TINY_BYTES = 64  # what is as small as a head is not worth compressing


class Segments(SegmentFiles):
    """All objects of one store; belongs to the one who holds the lock of the store."""

    def __init__(self, disk: Disk, directory: Path, chance: Chance) -> None:
        super().__init__(disk, directory)
        self._chance = chance
        self._compressor = _compressor(_WRITE_BYTES)
        # It looks for what is longer, which takes half of the time and finds nearly as much.
        self._compressor_of_small = _compressor(BUNDLE_BYTES, min_match=7)
        self._writing: OpenFile | None = None
        self._number, self._mark = max(self.numbers(), default=0), b""
        self._committed: dict[int, int] = {}
        self._end = 0
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._is_new = self._is_renewed = False
        self._stopped_by: str | None = None

    @property
    def committed(self) -> dict[int, int]:
        """How far each segment that was written to is committed, by its number."""
        return dict(self._committed)

    def append(self, sort: ObjectSort, name: bytes, data: bytes) -> Location:
        """Put an object at the end; it is kept from the next commit on, or not at all."""
        self._begin()
        codec, stored = self._packed(data)
        head = write_head(self._mark, sort, codec, name=name, raw_bytes=len(data), stored=stored)
        return self._write(head, stored)

    def append_together(self, files: Mapping[bytes, bytes]) -> dict[bytes, Location]:
        """Put small files at the end, by their names, as one record; where each of them is."""
        name = name_of(ObjectSort.BUNDLE, b"".join(files))
        together = self.append(ObjectSort.BUNDLE, name, encode_bundle(files))
        number, offset, size, record_bytes = together
        shares = rooms([len(each) for each in files.values()], record_bytes)
        return {
            name: Location(number, offset, size, room)
            for name, room in zip(files, shares, strict=True)
        }

    def copy(self, name: bytes, location: Location) -> Location:
        """Put the record of an object at the end once more; raise ObjectDamaged if it is not."""
        found, stored = self._record(name, location)
        self._begin()
        sort, codec, raw_bytes = found.sort, found.codec, found.raw_bytes
        head = write_head(
            self._mark, sort, codec, name=found.name, raw_bytes=raw_bytes, stored=stored
        )
        return self._write(head, stored)

    def renew(self) -> None:
        """Let what comes go into a new segment; nothing may wait to be committed."""
        assert not self._waiting
        self._close_writing()
        self._is_renewed = True

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
        self._waiting, self._waiting_bytes, self._bundle = [], 0, None
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

    def drop(self, number: int) -> None:
        """Take a segment away, for good; whoever calls this needs nothing in it any more."""
        assert number != self._number, "it is written to"
        self._committed.pop(number, None)
        super().drop(number)

    def close(self) -> None:
        """Let go of all files; what was not committed is taken back."""
        self.abandon()
        self._close_writing()
        super().close()

    def _write(self, head: bytes, stored: bytes) -> Location:
        record_bytes = HEAD_BYTES + len(stored)
        location = Location(self._number, self._end, len(stored), record_bytes)
        self._waiting += (head, stored)
        self._waiting_bytes += record_bytes
        self._end += record_bytes
        if self._waiting_bytes >= _WRITE_BYTES:
            self._flush()
        return location

    def _begin(self) -> None:
        """Have a segment to write to that has room."""
        if self._stopped_by is not None:
            raise StoreReadOnly(path=str(self.path(self._number)), cause=self._stopped_by)
        if self._writing is not None and self._end < SEGMENT_BYTES_MAX:
            return
        is_fresh = self._number == 0 or self._is_renewed
        if self._writing is None and not is_fresh and self._resume():
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
        self._is_new, self._is_renewed = True, False
        self._committed[number], self._end = 0, SEGMENT_HEAD_BYTES
        self._waiting, self._waiting_bytes = [segment_head(self._mark)], SEGMENT_HEAD_BYTES

    def _uncreate(self) -> None:
        """Take a segment back that nothing was committed to; if it stays, it is passed over."""
        self._close_writing()
        self._is_new = False
        del self._committed[self._number]
        self._close_reading(self._number)
        with suppress(Failure):
            self._disk.unlink(self.path(self._number))
            self._number -= 1

    def _settle(self, number: int) -> None:
        if number == self._number and self._waiting:
            self._flush()

    def _flush(self) -> None:
        assert self._writing is not None
        data, self._waiting, self._waiting_bytes = b"".join(self._waiting), [], 0
        write_all(self._writing, data, path=self.path(self._number))

    def _close_writing(self) -> None:
        if self._writing is not None:
            self._writing.close()
            self._writing = None

    def _packed(self, data: bytes) -> tuple[Codec, bytes]:
        if len(data) > _TINY_BYTES:
            is_small = len(data) <= BUNDLE_BYTES + SMALL_BYTES_MAX
            packed = (self._compressor_of_small if is_small else self._compressor).compress(data)
            if len(packed) < len(data) - len(data) // 16:
                return Codec.ZSTD, packed
        return Codec.RAW, data


def _compressor(data_bytes: int, **finer: int) -> ZstdCompressor:
    """A compressor that is at its best with so many bytes."""
    parameters = ZstdCompressionParameters.from_level(  # pyright: ignore[reportUnknownMemberType]  # its stub leaves other keywords open
        1, source_size=data_bytes, write_content_size=False, **finer
    )
    return ZstdCompressor(compression_params=parameters)
