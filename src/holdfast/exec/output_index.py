"""Index of the output of a process: fixed-size records, addressed by sequence number.

File format (little-endian; one file per process):

    offset 0                 header: magic HFX1|HFX2, first, exit_seq, exit_status, rings, CRC32
    offset seq * 32          record: start of stream 0, start of stream 1, length, status,
                             kind (output, exited, closed), stream, CRC32 seeded with seq

Invariants: record `seq` is at `seq * RECORD_BYTES`, so no search is needed; records adjoin, the
starts of one are the ends of the one before; output is written to its stream file before its
record, and the record before its notification. Each record holds the start offsets of both streams,
so that any single record tells the position of everything before it: opening an index reads its
last valid record, whatever the file size, and dropping the oldest output changes one number in the
header.

Recovery: the last record whose CRC is valid and whose output is present in the stream files is the
end of the index; output past it is indexed again (`uncovered_records`). A torn record is never
believed, because its sequence number seeds the CRC. HFX2 adds ring sizes; without rings HFX1 is
written, which older servers can read. Nothing is fsynced: after a power loss the process is gone
too.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

RECORD_BYTES = 32
CHUNK_BYTES_MAX = 64 * 2**10
RING_UNIT = 2**20
"""Rings have whole multiples of this, which are counted in 16 bits."""

LOST_STATUS = -1
"""In place of an exit status: the keeper was lost, and with it how the process ended."""

# The second form says how long the rings are; without rings it is the first, which every server
# reads.
_FORMAT, _FORMAT_WITH_RINGS = b"HFX1", b"HFX2"
_HEADER = struct.Struct("<4sQQiHH")
RECORD = struct.Struct("<QQIiBB2x")
_STARTS = struct.Struct("<QQ")
SUM = struct.Struct("<I")


class RecordKind(IntEnum):
    """Kind of an event."""

    OUTPUT = 1
    EXITED = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHeader:
    """Oldest retained sequence number, and the exit, whose record may have been dropped.

    `rings` are the ring sizes in bytes of both streams, 0 for a file that grows.
    """

    first: int = 1
    exit_seq: int = 0
    exit_status: int = 0
    rings: tuple[int, int] = (0, 0)

    def pack(self) -> bytes:
        form = _FORMAT_WITH_RINGS if any(self.rings) else _FORMAT
        units = [ring // RING_UNIT for ring in self.rings]
        body = _HEADER.pack(form, self.first, self.exit_seq, self.exit_status, *units)
        return body + _summed(body, 0)


class IndexRecord(NamedTuple):
    """One event of a process: a piece of output, its exit, or its close.

    `starts` are the lengths of both streams before it; a terminal has only the first stream.
    """

    seq: int
    kind: RecordKind
    starts: tuple[int, int]
    stream: int = 0
    length: int = 0
    status: int = 0

    @property
    def offset(self) -> int:
        """Offset of its output in the stream."""
        return self.starts[self.stream]

    @property
    def ends(self) -> tuple[int, int]:
        """Lengths of both streams after it."""
        first, second = self.starts
        grown = self.length
        return (first, second + grown) if self.stream else (first + grown, second)

    @property
    def cost(self) -> int:
        """Bytes of everything before it, index records included."""
        return cost_before(self.seq, self.starts)

    def pack(self) -> bytes:
        """Encode the record; its sequence number is in the CRC and in its offset."""
        body = RECORD.pack(*self.starts, self.length, self.status, self.kind, self.stream)
        return body + _summed(body, self.seq)


def cost_before(seq: int, starts: tuple[int, int]) -> int:
    """Return the bytes of everything before a record, index records included."""
    return starts[0] + starts[1] + seq * RECORD_BYTES


def read_cost(data: bytes, seq: int) -> int:
    """Return the cost of an encoded record without decoding it."""
    return cost_before(seq, _STARTS.unpack_from(data))


def read_header(data: bytes) -> IndexHeader | None:
    """Decode a header; None if the CRC or the magic is invalid."""
    body, checksum = data[: _HEADER.size], data[_HEADER.size :]
    if checksum != _summed(body, 0):
        return None
    form, first, exit_seq, exit_status, *units = _HEADER.unpack_from(data)
    if form not in (_FORMAT, _FORMAT_WITH_RINGS):
        return None
    rings = (units[0] * RING_UNIT, units[1] * RING_UNIT)
    return IndexHeader(first=first, exit_seq=exit_seq, exit_status=exit_status, rings=rings)


def read_record(data: bytes, seq: int) -> IndexRecord | None:
    """Decode record `seq`; None if it is not valid."""
    body, checksum = data[: RECORD.size], data[RECORD.size :]
    if checksum != _summed(body, seq):
        return None
    first, second, length, status, kind, stream = RECORD.unpack_from(data)
    return IndexRecord(
        seq=seq,
        kind=RecordKind(kind),
        starts=(first, second),
        stream=stream,
        length=length,
        status=status,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPosition:
    """End of the index: next sequence number, and how much of each stream is indexed."""

    next_seq: int = 1
    covered: tuple[int, int] = (0, 0)
    exit_seq: int | None = None
    exit_status: int | None = None
    is_closed: bool = False

    @property
    def cost(self) -> int:
        """Bytes of everything that was ever written."""
        return cost_before(self.next_seq, self.covered)

    def after(self, record: IndexRecord) -> IndexPosition:
        """Return the position after one more record."""
        assert record.seq == self.next_seq and record.starts == self.covered, "records adjoin"
        is_exit = record.kind is RecordKind.EXITED
        return IndexPosition(
            next_seq=record.seq + 1,
            covered=record.ends,
            exit_seq=record.seq if is_exit else self.exit_seq,
            exit_status=record.status if is_exit else self.exit_status,
            is_closed=record.kind is RecordKind.CLOSED,
        )


def recover(
    header: IndexHeader,
    count: int,
    record_at: Callable[[int], IndexRecord | None],
    sizes: tuple[int, int],
) -> tuple[IndexHeader, IndexPosition]:
    """Return header and position of an index of `count` records whose writer died.

    Ignores a torn record at the end, and records of output that the stream files do not contain.
    """
    for seq in range(count, max(header.first, 1) - 1, -1):
        last = record_at(seq)
        if last is not None and all(
            end <= size for end, size in zip(last.ends, sizes, strict=True)
        ):
            break
    else:
        return IndexHeader(first=1, rings=header.rings), IndexPosition()
    has_exit = 0 < header.exit_seq <= last.seq
    noted = record_at(header.exit_seq) if has_exit and header.exit_seq >= header.first else None
    if noted is not None and noted.kind is not RecordKind.EXITED:
        # Its writer died between the header and the record.
        has_exit = False
    if not has_exit:
        header = replace(header, exit_seq=0, exit_status=0)
    return header, IndexPosition(
        next_seq=last.seq + 1,
        covered=last.ends,
        exit_seq=header.exit_seq if has_exit else None,
        exit_status=header.exit_status if has_exit else None,
        is_closed=last.kind is RecordKind.CLOSED,
    )


def first_within(
    bytes_max: int,
    position: IndexPosition,
    bounds: tuple[int, int],
    cost_before: Callable[[int], int],
) -> int:
    """Return the oldest sequence number from which everything fits into `bytes_max` (binary
    search).

    The newest record is always retained, whatever its size.
    """
    least, most = bounds
    most = min(most, max(position.next_seq - 1, least))
    while least < most:
        middle = (least + most) // 2
        if position.cost - cost_before(middle) > bytes_max:
            least = middle + 1
        else:
            most = middle
    return least


def _summed(body: bytes, seq: int) -> bytes:
    return SUM.pack(crc32(body, seq & 0xFFFFFFFF))


# Runs: adjacent records are read and written together, since a gigabyte of output has 15,000.

_SUMMED_RECORD = struct.Struct(f"{RECORD.format}{SUM.format.removeprefix('<')}")
# Output that is sent in one batch.
_RUN_BYTES_MAX = 512 * 2**10
_RUNS_MAX = 4
_OUTPUT = int(RecordKind.OUTPUT)
_KINDS = {int(kind): kind for kind in RecordKind}


Pieces = Iterator[tuple[int, memoryview]]
"""The number of each record with its part of the output, to be used before the next is taken."""


class RecordDamaged(ValueError):
    """The CRC of a record does not match: the file was changed on the disk."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"record {seq} of its output is damaged on the disk")
        self.seq = seq


class RecordRun(NamedTuple):
    """Adjacent records that are read as one: output of one stream, or a single exit or close.

    `lengths` has one entry per record; an exit or close has length 0.
    """

    first_seq: int
    kind: RecordKind
    stream: int
    offset: int
    lengths: list[int]
    status: int

    @property
    def size(self) -> int:
        """Bytes of output in the run."""
        return sum(self.lengths)

    @property
    def last_seq(self) -> int:
        """Sequence number of the last record."""
        return self.first_seq + len(self.lengths) - 1


def read_runs(data: bytes, first_seq: int, *, bytes_max: int, is_begun: bool) -> list[RecordRun]:
    """Decode records to runs, as far as their output fits into `bytes_max`.

    Unless it `is_begun`, the first piece is returned whatever its size. Raises `RecordDamaged`.
    """
    runs: list[RecordRun] = []
    lengths: list[int] = []
    of, size, room = -1, 0, bytes_max
    # Hot loop, 15,000 iterations per gigabyte: decodes fields without creating records.
    for place, fields in enumerate(_SUMMED_RECORD.iter_unpack(data)):
        first, second, length, status, kind, stream, checksum = fields
        seq, begin = first_seq + place, place * RECORD_BYTES
        if crc32(data[begin : begin + RECORD.size], seq & 0xFFFFFFFF) != checksum:
            if runs:
                # The runs before the damaged record are valid.
                break
            raise RecordDamaged(seq)
        if is_begun and length and length > room:
            break
        is_begun, room = is_begun or length > 0, room - length
        if kind != _OUTPUT or stream != of or size + length > _RUN_BYTES_MAX:
            of, size, lengths = stream if kind == _OUTPUT else -1, 0, []
            offset = second if stream else first
            runs.append(RecordRun(seq, _KINDS[kind], stream, offset, lengths, status))
        lengths.append(length)
        size += length
    return runs


def uncovered_records(
    position: IndexPosition, sizes: tuple[int, int]
) -> tuple[bytes, IndexPosition, RecordRun | None]:
    """Encode records for output in the stream files past the index; returns the new position too.

    Also returns the run of the new records if they are of one stream, as `read_runs` would.
    """
    seq, covered = position.next_seq, position.covered
    records: list[bytes] = []
    pack, pack_sum, run = RECORD.pack, SUM.pack, None
    for stream, size in enumerate(sizes):
        if size <= covered[stream]:
            continue
        run = None if records else RecordRun(seq, RecordKind.OUTPUT, stream, covered[stream], [], 0)
        lengths = [CHUNK_BYTES_MAX] * ((size - covered[stream]) // CHUNK_BYTES_MAX)
        if (rest := (size - covered[stream]) % CHUNK_BYTES_MAX) > 0:
            lengths.append(rest)
        first, second = covered
        # Hot loop, like `read_runs`: packs fields without creating records.
        for length in lengths:
            body = pack(first, second, length, 0, _OUTPUT, stream)
            records += (body, pack_sum(crc32(body, seq & 0xFFFFFFFF)))
            seq += 1
            if stream:
                second += length
            else:
                first += length
        covered = first, second
        if run is not None:
            run.lengths.extend(lengths)
    if not records:
        return b"", position, None
    after = IndexPosition(
        next_seq=seq,
        covered=covered,
        exit_seq=position.exit_seq,
        exit_status=position.exit_status,
        is_closed=position.is_closed,
    )
    return b"".join(records), after, run


class RecentRuns:
    """Cache of the last runs, each with the cost before it, so that new output needs no index read.

    All pieces of such a run but the last have the full chunk size. A run is evicted as a whole.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[RecordRun, int]] = deque(maxlen=_RUNS_MAX)

    def put(self, run: RecordRun, cost: int) -> None:
        self._runs.append((run, cost))

    def cost_before(self, seq: int) -> int | None:
        """Return the cost of a record, None if it is not cached."""
        found = self._find(seq)
        if found is None:
            return None
        return found[1] + (seq - found[0].first_seq) * (CHUNK_BYTES_MAX + RECORD_BYTES)

    def parts(
        self, seq: int, count: int, *, bytes_max: int, is_begun: bool
    ) -> list[RecordRun] | None:
        """Return the runs of cached records, as `read_runs` would; None if the first is not
        cached.
        """
        found = self._find(seq)
        if found is None:
            return None
        run = found[0]
        begin, room, parts = seq - run.first_seq, bytes_max, list[RecordRun]()
        stop, lengths = min(begin + count, len(run.lengths)), run.lengths
        while begin < stop and not (is_begun and lengths[begin] > room):
            fits = max(1, min(room, _RUN_BYTES_MAX) // CHUNK_BYTES_MAX)
            end, is_begun = min(stop, begin + fits), True
            offset = run.offset + begin * CHUNK_BYTES_MAX
            part = RecordRun(
                run.first_seq + begin, run.kind, run.stream, offset, lengths[begin:end], 0
            )
            parts.append(part)
            begin, room = end, room - (end - begin - 1) * CHUNK_BYTES_MAX - lengths[end - 1]
        return parts

    def _find(self, seq: int) -> tuple[RecordRun, int] | None:
        for found in self._runs:
            first = found[0].first_seq
            if first <= seq < first + len(found[0].lengths):
                return found
        return None
