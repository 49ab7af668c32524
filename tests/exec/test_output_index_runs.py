"""Records are written and read in runs, and what was written last is known without reading."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.output_index import (
    CHUNK_BYTES_MAX,
    RECORD_BYTES,
    IndexPosition,
    IndexRecord,
    RecentRuns,
    RecordDamaged,
    RecordKind,
    RecordRun,
    read_cost,
    read_runs,
    uncovered_records,
)
from tests.exec.test_output_index import ALL, HALF_WAY


def test_output_is_covered_in_pieces() -> None:
    sizes = (10 + CHUNK_BYTES_MAX + 1, 5 + 3)

    data, position, run = uncovered_records(HALF_WAY, sizes)

    starts = [(10, 5), (10 + CHUNK_BYTES_MAX, 5), (sizes[0], 5)]
    lengths = [(0, CHUNK_BYTES_MAX), (0, 1), (1, 3)]
    assert data == b"".join(
        IndexRecord(
            seq=seq, kind=RecordKind.OUTPUT, starts=start, stream=stream, length=length
        ).pack()
        for seq, (start, (stream, length)) in enumerate(zip(starts, lengths, strict=True), start=3)
    )
    assert position == replace(HALF_WAY, next_seq=6, covered=sizes)
    assert run is None  # it is about two streams


RUNS = [
    RecordRun(1, RecordKind.OUTPUT, 0, 0, [10], 0),
    RecordRun(2, RecordKind.OUTPUT, 1, 0, [5], 0),
    RecordRun(3, RecordKind.EXITED, 0, 10, [0], -7),
    RecordRun(4, RecordKind.OUTPUT, 0, 10, [2], 0),
    RecordRun(5, RecordKind.CLOSED, 0, 12, [0], 0),
]


@pytest.mark.parametrize(
    ("bytes_max", "is_begun", "count"),
    [(17, True, 5), (16, True, 3), (9, True, 0), (9, False, 1), (0, False, 1), (15, False, 3)],
)
def test_records_are_read_in_runs_as_far_as_there_is_room(
    bytes_max: int, is_begun: bool, count: int
) -> None:
    data = b"".join(record.pack() for record in ALL)

    assert read_runs(data, 1, bytes_max=bytes_max, is_begun=is_begun) == RUNS[:count]


def test_what_stands_before_a_damaged_record_is_read_and_the_damage_is_named() -> None:
    data = bytearray(b"".join(record.pack() for record in ALL))
    data[2 * RECORD_BYTES] ^= 1

    assert read_runs(bytes(data), 1, bytes_max=100, is_begun=False) == RUNS[:2]
    with pytest.raises(RecordDamaged, match="record 3 "):
        read_runs(bytes(data[2 * RECORD_BYTES :]), 3, bytes_max=100, is_begun=False)


def test_output_of_one_stream_is_one_run_unless_it_is_much() -> None:
    sizes = (9 * CHUNK_BYTES_MAX, 10)
    data, _, _ = uncovered_records(IndexPosition(), sizes)

    runs = read_runs(data, 1, bytes_max=sum(sizes), is_begun=True)

    assert [(run.first_seq, run.last_seq, run.size) for run in runs] == [
        (1, 8, 8 * CHUNK_BYTES_MAX),
        (9, 9, CHUNK_BYTES_MAX),
        (10, 10, 10),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 20 * CHUNK_BYTES_MAX)), max_size=8),
    st.integers(0, 2**21),
    st.booleans(),
    st.data(),
)
def test_what_was_written_last_is_known_as_it_would_be_read(
    growth: list[tuple[int, int]], bytes_max: int, is_begun: bool, data: st.DataObject
) -> None:
    index, position, recent, sizes = bytearray(RECORD_BYTES), IndexPosition(), RecentRuns(), [0, 0]
    for stream, count in growth:
        sizes[stream] += count
        records, after, run = uncovered_records(position, (sizes[0], sizes[1]))
        index += records
        assert run is not None
        recent.put(run, position.cost)
        position = after

    seq = data.draw(st.integers(1, position.next_seq))
    stored = bytes(index[seq * RECORD_BYTES :])
    cost = recent.cost_before(seq)
    assert cost is None or cost == read_cost(stored, seq)
    known = recent.parts(seq, position.next_seq - seq, bytes_max=bytes_max, is_begun=is_begun)
    if known is not None:
        read = read_runs(stored, seq, bytes_max=bytes_max, is_begun=is_begun)
        assert _pieces(known) == _pieces(read)[: len(_pieces(known))]
        assert bool(known) == bool(read)  # who is told of nothing would ask no further
    assert (known is None) == (cost is None)


def test_only_the_last_few_are_remembered() -> None:
    recent = RecentRuns()
    for first in range(1, 7):
        recent.put(RecordRun(first, RecordKind.OUTPUT, 0, first * 10, [10], 0), 0)

    assert [recent.cost_before(seq) is not None for seq in range(1, 8)] == [
        *(False, False),
        *(True, True, True, True),
        False,
    ]


def _pieces(runs: list[RecordRun]) -> list[tuple[int, int, int, int]]:
    """Every piece by itself: number, stream, place and size."""
    found: list[tuple[int, int, int, int]] = []
    for run in runs:
        offset = run.offset
        for seq, length in enumerate(run.lengths, start=run.first_seq):
            found.append((seq, run.stream, offset, length))
            offset += length
    return found
