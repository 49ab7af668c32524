"""Write and read the records of an index in runs: a gigabyte of output is fifteen thousand."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from holdfast.exec.core.index import (
    CHUNK_BYTES_MAX,
    RECORD,
    RECORD_BYTES,
    SUM,
    Kind,
    Position,
)

_SUMMED_RECORD = struct.Struct(f"{RECORD.format}{SUM.format.removeprefix('<')}")
_RUN_BYTES_MAX = 512 * 2**10  # so much is told in one go
_RUNS_MAX = 4
_OUTPUT = int(Kind.OUTPUT)
_KINDS = {int(kind): kind for kind in Kind}


Pieces = Iterator[tuple[int, memoryview]]
"""The number of each record with its part of the output, to be used before the next is taken."""


class Damaged(ValueError):
    """A record is not what was written there: something has changed it on the disk."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"record {seq} of its output is damaged on the disk")
        self.seq = seq


class Run(NamedTuple):
    """Records in a row that are read as one: pieces of one stream's output, or one exit or close.

    `lengths` has a number for each of them; what has no output has none of it.
    """

    first_seq: int
    kind: Kind
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


def read_runs(data: bytes, first_seq: int, *, bytes_max: int, is_begun: bool) -> list[Run]:
    """What the records from a number on are about, as far as `bytes_max` has room for the output.

    Unless it `is_begun`, the first piece is there whatever its size. Raises `Damaged`.
    """
    runs: list[Run] = []
    lengths: list[int] = []
    of, size, room = -1, 0, bytes_max
    # Fifteen thousand times a gigabyte: as `read_record`, without a record.
    for place, fields in enumerate(_SUMMED_RECORD.iter_unpack(data)):
        first, second, length, status, kind, stream, checksum = fields
        seq, begin = first_seq + place, place * RECORD_BYTES
        if crc32(data[begin : begin + RECORD.size], seq & 0xFFFFFFFF) != checksum:
            if runs:
                break  # what is before it can be told
            raise Damaged(seq)
        if is_begun and length and length > room:
            break
        is_begun, room = is_begun or length > 0, room - length
        if kind != _OUTPUT or stream != of or size + length > _RUN_BYTES_MAX:
            of, size, lengths = stream if kind == _OUTPUT else -1, 0, []
            offset = second if stream else first
            runs.append(Run(seq, _KINDS[kind], stream, offset, lengths, status))
        lengths.append(length)
        size += length
    return runs


def covering(position: Position, sizes: tuple[int, int]) -> tuple[bytes, Position, Run | None]:
    """Records for all output that is in the files and not in the index, and how far they go.

    Also what they are about, if that is one stream, as it would be read back.
    """
    seq, covered = position.next_seq, position.covered
    records: list[bytes] = []
    pack, pack_sum, run = RECORD.pack, SUM.pack, None
    for stream, size in enumerate(sizes):
        if size <= covered[stream]:
            continue
        run = None if records else Run(seq, Kind.OUTPUT, stream, covered[stream], [], 0)
        lengths = [CHUNK_BYTES_MAX] * ((size - covered[stream]) // CHUNK_BYTES_MAX)
        if (rest := (size - covered[stream]) % CHUNK_BYTES_MAX) > 0:
            lengths.append(rest)
        first, second = covered
        # As often as runs are read: as `Record.pack`, without the record.
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
    after = Position(
        next_seq=seq,
        covered=covered,
        exit_seq=position.exit_seq,
        exit_status=position.exit_status,
        is_closed=position.is_closed,
    )
    return b"".join(records), after, run


class Recent:
    """The last few runs that `covering` made, each with what everything before it costs.

    Of such a run all pieces but the last have the full size. A run is forgotten as a whole.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[Run, int]] = deque(maxlen=_RUNS_MAX)

    def put(self, run: Run, cost: int) -> None:
        """Remember one more."""
        self._runs.append((run, cost))

    def cost_before(self, seq: int) -> int | None:
        """The cost of the record `seq`, if it is in one of them."""
        found = self._find(seq)
        if found is None:
            return None
        return found[1] + (seq - found[0].first_seq) * (CHUNK_BYTES_MAX + RECORD_BYTES)

    def parts(self, seq: int, count: int, *, bytes_max: int, is_begun: bool) -> list[Run] | None:
        """What so many records from a number on are about, as `read_runs` reads them.

        As far as that is known: None if the first is in none of the runs.
        """
        found = self._find(seq)
        if found is None:
            return None
        run = found[0]
        begin, room, parts = seq - run.first_seq, bytes_max, list[Run]()
        stop, lengths = min(begin + count, len(run.lengths)), run.lengths
        while begin < stop and not (is_begun and lengths[begin] > room):
            fits = max(1, min(room, _RUN_BYTES_MAX) // CHUNK_BYTES_MAX)
            end, is_begun = min(stop, begin + fits), True
            offset = run.offset + begin * CHUNK_BYTES_MAX
            part = Run(run.first_seq + begin, run.kind, run.stream, offset, lengths[begin:end], 0)
            parts.append(part)
            begin, room = end, room - (end - begin - 1) * CHUNK_BYTES_MAX - lengths[end - 1]
        return parts

    def _find(self, seq: int) -> tuple[Run, int] | None:
        for found in self._runs:
            first = found[0].first_seq
            if first <= seq < first + len(found[0].lengths):
                return found
        return None
