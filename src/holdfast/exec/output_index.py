"""The index of what a process has put out: fixed records, each found by its sequence number.

Record `seq` stands at `seq * RECORD_BYTES`; in place 0 stands the header. A record says where in
both streams it begins, so that any single one tells how far everything had come: opening an index
reads its last record, whatever its size, and dropping the oldest output moves one number.
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
    """What happened to the process."""

    OUTPUT = 1
    EXITED = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexHeader:
    """Which output is still kept, and where the exit is noted, which may be dropped like all.

    `rings` is how many bytes the ring has in which a stream is kept, 0 for a file that grows.
    """

    first: int = 1
    exit_seq: int = 0
    exit_status: int = 0
    rings: tuple[int, int] = (0, 0)

    def pack(self) -> bytes:
        """The header as it stands in the file."""
        form = _FORMAT_WITH_RINGS if any(self.rings) else _FORMAT
        units = [ring // RING_UNIT for ring in self.rings]
        body = _HEADER.pack(form, self.first, self.exit_seq, self.exit_status, *units)
        return body + _summed(body, 0)


class IndexRecord(NamedTuple):
    """One event of a process: a piece of output, its exit, or that all has been said.

    `starts` is how long both streams were before it; a terminal has one stream, the first.
    """

    seq: int
    kind: RecordKind
    starts: tuple[int, int]
    stream: int = 0
    length: int = 0
    status: int = 0

    @property
    def offset(self) -> int:
        """Where its output begins in the file of its stream."""
        return self.starts[self.stream]

    @property
    def ends(self) -> tuple[int, int]:
        """How long both streams are after it."""
        first, second = self.starts
        grown = self.length
        return (first, second + grown) if self.stream else (first + grown, second)

    @property
    def cost(self) -> int:
        """How many bytes everything before it takes, its own place in the index included."""
        return cost_before(self.seq, self.starts)

    def pack(self) -> bytes:
        """The record as it stands in the file; its number is in the sum and in its place."""
        body = RECORD.pack(*self.starts, self.length, self.status, self.kind, self.stream)
        return body + _summed(body, self.seq)


def cost_before(seq: int, starts: tuple[int, int]) -> int:
    """How many bytes everything before a record takes, its own place in the index included."""
    return starts[0] + starts[1] + seq * RECORD_BYTES


def read_cost(data: bytes, seq: int) -> int:
    """The cost of the record `seq` that these bytes are: the same, at a glance."""
    return cost_before(seq, _STARTS.unpack_from(data))


def read_header(data: bytes) -> IndexHeader | None:
    """The header that these bytes are, if they are one."""
    body, checksum = data[: _HEADER.size], data[_HEADER.size :]
    if checksum != _summed(body, 0):
        return None
    form, first, exit_seq, exit_status, *units = _HEADER.unpack_from(data)
    if form not in (_FORMAT, _FORMAT_WITH_RINGS):
        return None
    rings = (units[0] * RING_UNIT, units[1] * RING_UNIT)
    return IndexHeader(first=first, exit_seq=exit_seq, exit_status=exit_status, rings=rings)


def read_record(data: bytes, seq: int) -> IndexRecord | None:
    """The record `seq` that these bytes are, if they are that one whole."""
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
    """How far the index has come: its next number, and how much of each stream it covers."""

    next_seq: int = 1
    covered: tuple[int, int] = (0, 0)
    exit_seq: int | None = None
    exit_status: int | None = None
    is_closed: bool = False

    @property
    def cost(self) -> int:
        """How many bytes everything takes that there has ever been."""
        return cost_before(self.next_seq, self.covered)

    def after(self, record: IndexRecord) -> IndexPosition:
        """How far it has come with one more record."""
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
    """How far an index of `count` records had come when its writer died.

    What was torn at its end does not count, nor what speaks of output that the files do not have.
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
        has_exit = False  # its writer died between the header and the record
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
    """The oldest number from which on all fits into `bytes_max`, or the end of the bounds.

    The newest record is always kept, whatever its size.
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


# Write and read the records of an index in runs: a gigabyte of output is fifteen thousand.

_SUMMED_RECORD = struct.Struct(f"{RECORD.format}{SUM.format.removeprefix('<')}")
_RUN_BYTES_MAX = 512 * 2**10  # so much is told in one go
_RUNS_MAX = 4
_OUTPUT = int(RecordKind.OUTPUT)
_KINDS = {int(kind): kind for kind in RecordKind}


Pieces = Iterator[tuple[int, memoryview]]
"""The number of each record with its part of the output, to be used before the next is taken."""


class RecordDamaged(ValueError):
    """A record is not what was written there: something has changed it on the disk."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"record {seq} of its output is damaged on the disk")
        self.seq = seq


class RecordRun(NamedTuple):
    """Records in a row that are read as one: pieces of one stream's output, or one exit or close.

    `lengths` has a number for each of them; what has no output has none of it.
    """

    first_seq: int
    kind: RecordKind
    stream: int
    offset: int
    lengths: list[int]
    status: int

    @property
    def size(self) -> int:
        """How many bytes of output it is about."""
        return sum(self.lengths)

    @property
    def last_seq(self) -> int:
        """The number of its last record."""
        return self.first_seq + len(self.lengths) - 1


def read_runs(data: bytes, first_seq: int, *, bytes_max: int, is_begun: bool) -> list[RecordRun]:
    """What the records from a number on are about, as far as `bytes_max` has room for the output.

    Unless it `is_begun`, the first piece is there whatever its size. Raises `RecordDamaged`.
    """
    runs: list[RecordRun] = []
    lengths: list[int] = []
    of, size, room = -1, 0, bytes_max
    # Fifteen thousand times a gigabyte: as `read_record`, without a record.
    for place, fields in enumerate(_SUMMED_RECORD.iter_unpack(data)):
        first, second, length, status, kind, stream, checksum = fields
        seq, begin = first_seq + place, place * RECORD_BYTES
        if crc32(data[begin : begin + RECORD.size], seq & 0xFFFFFFFF) != checksum:
            if runs:
                break  # what is before it can be told
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
    """Records for all output that is in the files and not in the index, and how far they go.

    Also what they are about, if that is one stream, as it would be read back.
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
        # As often as runs are read: as `IndexRecord.pack`, without the record.
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
    """The last few runs that `uncovered_records` made, each with what everything before it costs.

    Of such a run all pieces but the last have the full size. A run is forgotten as a whole.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[RecordRun, int]] = deque(maxlen=_RUNS_MAX)

    def put(self, run: RecordRun, cost: int) -> None:
        """Remember one more."""
        self._runs.append((run, cost))

    def cost_before(self, seq: int) -> int | None:
        """The cost of the record `seq`, if it is in one of them."""
        found = self._find(seq)
        if found is None:
            return None
        return found[1] + (seq - found[0].first_seq) * (CHUNK_BYTES_MAX + RECORD_BYTES)

    def parts(
        self, seq: int, count: int, *, bytes_max: int, is_begun: bool
    ) -> list[RecordRun] | None:
        """What so many records from a number on are about, as `read_runs` reads them.

        As far as that is known: None if the first is in none of the runs.
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
