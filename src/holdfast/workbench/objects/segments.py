"""Segments: append-only files of records.

Appended records become durable together, by one fdatasync in `commit`; until then `rollback`
discards them.

A segment is never repaired. After a crash its tail may hold garbage, and later records follow
behind it; a scan skips garbage by searching for the next sync mark (see `formats`). Numbers of
segments only grow and are never reused, so that an index cannot confuse an old file with a new one.

Decision: docs/decisions/0081-object-store-of-segments.md
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from zstandard import ZstdCompressionParameters, ZstdCompressor, ZstdDecompressor, ZstdError

from holdfast.failures import Failure
from holdfast.workbench.failures import ObjectDamaged
from holdfast.workbench.objects.formats import (
    BUNDLE_BYTES,
    HEADER_BYTES,
    MARK_BYTES,
    SEGMENT_HEADER_BYTES,
    SMALL_BYTES_MAX,
    ObjectKind,
    RecordCodec,
    RecordHeader,
    decode_bundle,
    decode_record_header,
    decode_segment_header,
    encode_bundle,
    encode_record_header,
    encode_segment_header,
    is_intact,
    name_of,
    record_shares,
)
from holdfast.world import Disk, OpenFile, RandomSource, write_all
from holdfast.world.failures import StoreReadOnly

_SEARCH_BYTES = 2**20
_OPEN_MAX = 32


class Location(NamedTuple):
    """Position of an object: its record, and its share of the record's bytes."""

    segment: int
    offset: int
    stored_bytes: int
    room: int

    @property
    def record_bytes(self) -> int:
        return HEADER_BYTES + self.stored_bytes

    @property
    def is_shared(self) -> bool:
        """Whether the record is a bundle with other objects."""
        return self.room < self.record_bytes


class ScannedObject(NamedTuple):
    """An intact object found by scanning a segment."""

    name: bytes
    kind: ObjectKind
    location: Location


class _OpenSegment(NamedTuple):
    file: OpenFile
    mark: bytes | None


class _Bundle(NamedTuple):
    segment: int
    offset: int
    files: dict[bytes, bytes]


class SegmentReader:
    """Read access to all segments of a store."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._directory = directory
        self._decompressor = ZstdDecompressor()
        self._reading: dict[int, _OpenSegment] = {}
        # Last one read: neighbours follow.
        self._bundle: _Bundle | None = None

    def numbers(self) -> list[int]:
        """Numbers of all segments, ascending."""
        names = (Path(name) for name in self._disk.names(self._directory))
        return sorted(int(name.stem) for name in names if _is_segment(name))

    def path(self, number: int) -> Path:
        return self._directory / f"{number:06}.seg"

    def size(self, number: int) -> int:
        """Size of a segment file in bytes."""
        return self._opened(number).file.status().size

    def read(self, name: bytes, location: Location) -> tuple[ObjectKind, bytes]:
        """Return kind and bytes of an object; raises ObjectDamaged if hash or checksum differ."""
        kind, data = self._found(name, location)
        if name_of(kind, data) != name:
            raise self._damaged(name, location, "a different object is stored there")
        return kind, data

    def kind_of(self, name: bytes, location: Location) -> ObjectKind:
        """Return the kind of an object from its header; only bundles are decompressed."""
        if location.is_shared:
            return self._found(name, location)[0]
        file, mark = self._opened(location.segment)
        head = decode_record_header(
            file.read(HEADER_BYTES, at=location.offset), mark or bytes(MARK_BYTES)
        )
        if head is None or head.name != name:
            raise self._damaged(name, location, "a different object is stored there")
        return head.kind

    def scan(self, number: int, start: int) -> Generator[ScannedObject]:
        """Yield every intact object in records that begin at `start` or later.

        Damage is skipped.
        """
        file, mark = self._opened(number)
        if mark is None:
            return
        at, size = max(start, SEGMENT_HEADER_BYTES), file.status().size
        while at < size:
            head_bytes = file.read(HEADER_BYTES, at=at)
            head = decode_record_header(head_bytes, mark)
            if head is not None and at + HEADER_BYTES + head.stored_bytes <= size:
                stored = file.read(head.stored_bytes, at=at + HEADER_BYTES)
                if is_intact(head_bytes, head, stored):
                    yield from self._all_in(Location(number, at, len(stored), 0), head, stored)
                    at += HEADER_BYTES + len(stored)
                    continue
            at = _next_mark(file, mark, at + 1, size)

    def sync(self, number: int) -> None:
        """Return once the content of a segment survives a power loss."""
        file = self._disk.open_to_write(self.path(number))
        try:
            file.sync_data()
            self._disk.sync_directory(self._directory)
        finally:
            file.close()

    def drop(self, number: int) -> None:
        """Delete a segment; the caller has evacuated all objects that are still needed."""
        self._bundle = None
        self._close_reading(number)
        self._disk.unlink(self.path(number))
        self._disk.sync_directory(self._directory)

    def close(self) -> None:
        """Close all file descriptors."""
        for number in list(self._reading):
            self._close_reading(number)

    def _settle(self, number: int) -> None:
        """Hook of the writer: flush buffered records of a segment before it is read."""

    def _found(self, name: bytes, location: Location) -> tuple[ObjectKind, bytes]:
        """Read an object at its location, through the one-bundle cache."""
        bundle = self._bundle
        if bundle is None or bundle[:2] != location[:2]:
            head, stored = self._record(name, location)
            try:
                data = self._unpacked(head, stored)
                if head.kind is not ObjectKind.BUNDLE:
                    return head.kind, data
                bundle = self._bundle = _Bundle(*location[:2], decode_bundle(data))
            except (ZstdError, ValueError) as error:
                raise self._damaged(name, location, "it cannot be unpacked") from error
        if name not in bundle.files:
            raise self._damaged(name, location, "a different object is stored there")
        return ObjectKind.BLOB, bundle.files[name]

    def _all_in(
        self, location: Location, head: RecordHeader, stored: bytes
    ) -> Iterator[ScannedObject]:
        """Every object in an intact record."""
        if head.kind is not ObjectKind.BUNDLE:
            yield ScannedObject(head.name, head.kind, location._replace(room=location.record_bytes))
            return
        with suppress(ZstdError, ValueError):
            files = decode_bundle(self._unpacked(head, stored))
            shares = record_shares([len(data) for data in files.values()], location.record_bytes)
            for name, room in zip(files, shares, strict=True):
                yield ScannedObject(name, ObjectKind.BLOB, location._replace(room=room))

    def _record(self, name: bytes, location: Location) -> tuple[RecordHeader, bytes]:
        """Read a record and check its checksum."""
        self._settle(location.segment)
        file, mark = self._opened(location.segment)
        record = file.read(location.record_bytes, at=location.offset)
        head, stored = (
            decode_record_header(record, mark or bytes(MARK_BYTES)),
            record[HEADER_BYTES:],
        )
        if head is None or not is_intact(record, head, stored):
            raise self._damaged(name, location, "its checksum differs")
        if head.name != name and head.kind is not ObjectKind.BUNDLE:
            raise self._damaged(name, location, "a different object is stored there")
        return head, stored

    def _opened(self, number: int) -> _OpenSegment:
        reading = self._reading.get(number)
        if reading is None:
            # Bounds open descriptors; the oldest is closed first.
            if len(self._reading) >= _OPEN_MAX:
                self._close_reading(next(iter(self._reading)))
            file = self._disk.open(self.path(number))
            reading = _OpenSegment(file, _mark_of(file))
            self._reading[number] = reading
        return reading

    def _unpacked(self, head: RecordHeader, stored: bytes) -> bytes:
        if head.codec is RecordCodec.RAW:
            return stored
        return self._decompressor.decompress(stored, max_output_size=head.raw_bytes)

    def _close_reading(self, number: int) -> None:
        reading = self._reading.pop(number, None)
        if reading is not None:
            reading.file.close()

    def _damaged(self, name: bytes, location: Location, reason: str) -> ObjectDamaged:
        return ObjectDamaged(
            object=name.hex(),
            path=str(self.path(location.segment)),
            offset=location.offset,
            reason=reason,
        )


def _is_segment(name: Path) -> bool:
    return name.suffix == ".seg" and name.stem.isascii() and name.stem.isdigit()


def _mark_of(file: OpenFile) -> bytes | None:
    """Return the sync mark of a segment, also if its header is damaged.

    The mark is repeated in every record. If the header disagrees with the first record, the record
    wins once its checksum, or a second record, confirms it.
    """
    begins = file.read(SEGMENT_HEADER_BYTES + HEADER_BYTES, at=0)
    mark, head_bytes = decode_segment_header(begins), begins[SEGMENT_HEADER_BYTES:]
    first = head_bytes[:MARK_BYTES]
    head = decode_record_header(head_bytes, first)
    if mark == first or head is None or head.stored_bytes > file.status().size:
        return mark
    follows = file.read(head.stored_bytes + MARK_BYTES, at=len(begins))
    stored, second = follows[: head.stored_bytes], follows[head.stored_bytes :]
    is_sure = is_intact(head_bytes, head, stored) and (mark is None or second == first)
    return first if is_sure else mark


def _next_mark(file: OpenFile, mark: bytes, at: int, size: int) -> int:
    while at < size:
        found = file.read(_SEARCH_BYTES + len(mark), at=at).find(mark)
        if found >= 0:
            return at + found
        at += _SEARCH_BYTES
    return size


SEGMENT_BYTES_MAX = 512 * 2**20
_WRITE_BYTES = 2**20
# What is as small as a head is not worth compressing.
_TINY_BYTES = 64


class Segments(SegmentReader):
    """Read and write access to all segments; the owner holds the lock of the store."""

    def __init__(self, disk: Disk, directory: Path, chance: RandomSource) -> None:
        super().__init__(disk, directory)
        self._chance = chance
        self._compressor = _compressor(_WRITE_BYTES)
        # A minimum match of 7 halves the time for small files and compresses nearly as well.
        self._small_compressor = _compressor(BUNDLE_BYTES, min_match=7)
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
        """Durable length of each segment written to since opening, by number."""
        return dict(self._committed)

    def append(self, kind: ObjectKind, name: bytes, data: bytes) -> Location:
        """Buffer an object; it is durable after the next `commit`, or discarded by `rollback`."""
        self._begin()
        codec, stored = self._packed(data)
        head = encode_record_header(
            self._mark, kind, codec, name=name, raw_bytes=len(data), stored=stored
        )
        return self._write(head, stored)

    def append_bundle(self, files: Mapping[bytes, bytes]) -> dict[bytes, Location]:
        """Buffer small files as one record; return the location of each."""
        name = name_of(ObjectKind.BUNDLE, b"".join(files))
        together = self.append(ObjectKind.BUNDLE, name, encode_bundle(files))
        number, offset, size, record_bytes = together
        shares = record_shares([len(each) for each in files.values()], record_bytes)
        return {
            name: Location(number, offset, size, room)
            for name, room in zip(files, shares, strict=True)
        }

    def copy(self, name: bytes, location: Location) -> Location:
        """Append a copy of an object's record; raises ObjectDamaged if the source is damaged."""
        found, stored = self._record(name, location)
        self._begin()
        kind, codec, raw_bytes = found.kind, found.codec, found.raw_bytes
        head = encode_record_header(
            self._mark, kind, codec, name=found.name, raw_bytes=raw_bytes, stored=stored
        )
        return self._write(head, stored)

    def renew(self) -> None:
        """Let the next append start a new segment; nothing may be buffered."""
        assert not self._waiting
        self._close_writing()
        self._is_renewed = True

    def commit(self) -> None:
        """Return once all appended records survive a power loss; one fdatasync for all of them."""
        if self._writing is None or self._end == self._committed[self._number]:
            return
        self._flush()
        try:
            self._writing.sync_data()
            if self._is_new:
                self._disk.sync_directory(self._directory)
        except (
            Failure
        ) as failure:  # after a failed fsync the kernel may drop dirty pages: stop writing
            self._stopped_by = failure.code
            raise
        self._is_new = False
        self._committed[self._number] = self._end

    def rollback(self) -> None:
        """Discard records appended since the last commit; never raises."""
        self._waiting, self._waiting_bytes, self._bundle = [], 0, None
        if self._writing is None:
            return
        if self._is_new:
            self._uncreate()
        elif self._end != self._committed[self._number]:
            try:
                self._writing.truncate(self._committed[self._number])
                self._end = self._committed[self._number]
            except Failure:
                # The tail stays as garbage, which scans skip.
                self._close_writing()

    def drop(self, number: int) -> None:
        """Delete a segment; the caller has evacuated all objects that are still needed."""
        assert number != self._number, "segment is open for writing"
        self._committed.pop(number, None)
        super().drop(number)

    def close(self) -> None:
        """Roll back and close all file descriptors."""
        self.rollback()
        self._close_writing()
        super().close()

    def _write(self, head: bytes, stored: bytes) -> Location:
        record_bytes = HEADER_BYTES + len(stored)
        location = Location(self._number, self._end, len(stored), record_bytes)
        self._waiting += (head, stored)
        self._waiting_bytes += record_bytes
        self._end += record_bytes
        if self._waiting_bytes >= _WRITE_BYTES:
            self._flush()
        return location

    def _begin(self) -> None:
        """Open a segment with room to write to."""
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
        """Continue the newest segment, unless it is full or unreadable."""
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
        self._committed[number], self._end = 0, SEGMENT_HEADER_BYTES
        self._waiting, self._waiting_bytes = (
            [encode_segment_header(self._mark)],
            SEGMENT_HEADER_BYTES,
        )

    def _uncreate(self) -> None:
        """Delete a segment to which nothing was committed; an orphan is ignored by scans."""
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

    def _packed(self, data: bytes) -> tuple[RecordCodec, bytes]:
        if len(data) > _TINY_BYTES:
            is_small = len(data) <= BUNDLE_BYTES + SMALL_BYTES_MAX
            packed = (self._small_compressor if is_small else self._compressor).compress(data)
            # Compression must save at least 1/16, else every later read pays for nothing.
            if len(packed) < len(data) - len(data) // 16:
                return RecordCodec.ZSTD, packed
        return RecordCodec.RAW, data


def _compressor(data_bytes: int, **finer: int) -> ZstdCompressor:
    parameters = ZstdCompressionParameters.from_level(  # pyright: ignore[reportUnknownMemberType]  # its stub leaves other keywords open
        1, source_size=data_bytes, write_content_size=False, **finer
    )
    return ZstdCompressor(compression_params=parameters)
