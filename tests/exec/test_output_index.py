"""The index tells from any single record how far everything had come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.output_index import (
    RECORD_BYTES,
    RING_UNIT,
    IndexHeader,
    IndexPosition,
    IndexRecord,
    RecordKind,
    first_within,
    read_header,
    read_record,
    recover,
    uncovered_records,
)

OUT = IndexRecord(seq=1, kind=RecordKind.OUTPUT, starts=(0, 0), length=10)
ERR = IndexRecord(seq=2, kind=RecordKind.OUTPUT, starts=(10, 0), stream=1, length=5)
EXIT = IndexRecord(seq=3, kind=RecordKind.EXITED, starts=(10, 5), status=-7)
LATE = IndexRecord(seq=4, kind=RecordKind.OUTPUT, starts=(10, 5), length=2)
CLOSE = IndexRecord(seq=5, kind=RecordKind.CLOSED, starts=(12, 5))
ALL = [OUT, ERR, EXIT, LATE, CLOSE]
NOTED = IndexHeader(exit_seq=3, exit_status=-7)
HALF_WAY = IndexPosition(next_seq=3, covered=(10, 5))


def recovered(header: IndexHeader, records: list[IndexRecord], sizes: tuple[int, int]) -> object:
    by_seq = {record.seq: record for record in records}
    return recover(header, max(by_seq, default=-1), by_seq.get, sizes)


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.kind.name)
def test_a_record_is_read_as_it_was_written(record: IndexRecord) -> None:
    assert read_record(record.pack(), record.seq) == record
    assert len(record.pack()) == RECORD_BYTES


def test_a_header_is_read_as_it_was_written() -> None:
    header = IndexHeader(first=2**40, exit_seq=2**41, exit_status=-1)
    with_rings = replace(header, rings=(71 * RING_UNIT, 0))

    assert read_header(header.pack()) == header
    assert read_header(with_rings.pack()) == with_rings


def test_only_a_header_with_rings_is_one_that_earlier_servers_do_not_know() -> None:
    assert IndexHeader().pack()[:4] == b"HFX1"
    assert IndexHeader(rings=(0, RING_UNIT)).pack()[:4] == b"HFX2"


@pytest.mark.parametrize(
    "data",
    [b"", OUT.pack()[:-1], bytes(RECORD_BYTES), OUT._replace(seq=2).pack(), b"x" * RECORD_BYTES],
    ids=["nothing", "torn", "hole", "of another place", "noise"],
)
def test_what_is_not_this_record_is_none(data: bytes) -> None:
    assert read_record(data, 1) is None
    assert read_header(data) is None


@pytest.mark.parametrize(
    ("header", "records", "sizes", "expected"),
    [
        (IndexHeader(), [], (0, 0), (IndexHeader(), IndexPosition())),
        (IndexHeader(), [], (9, 9), (IndexHeader(), IndexPosition())),
        (IndexHeader(), ALL[:2], (10, 5), (IndexHeader(), HALF_WAY)),
        (IndexHeader(), ALL[:2], (500, 5), (IndexHeader(), HALF_WAY)),
        (NOTED, ALL[:2], (10, 5), (IndexHeader(), HALF_WAY)),
        (
            NOTED,
            ALL,
            (12, 5),
            (
                NOTED,
                IndexPosition(
                    next_seq=6, covered=(12, 5), exit_seq=3, exit_status=-7, is_closed=True
                ),
            ),
        ),
        (
            replace(NOTED, first=4),
            ALL[3:4],
            (12, 5),
            (
                replace(NOTED, first=4),
                IndexPosition(next_seq=5, covered=(12, 5), exit_seq=3, exit_status=-7),
            ),
        ),
        (IndexHeader(exit_seq=2), ALL[:2], (10, 5), (IndexHeader(), HALF_WAY)),
        (
            IndexHeader(),
            ALL[:2],
            (10, 3),
            (IndexHeader(), IndexPosition(next_seq=2, covered=(10, 0))),
        ),
    ],
    ids=[
        "nothing",
        "output, but no index",
        "all is covered",
        "the file is longer",
        "the exit was announced, not written",
        "closed",
        "the exit was dropped",
        "output came where the exit was announced",
        "the file is shorter",
    ],
)
def test_an_index_is_taken_up_where_it_ended(
    header: IndexHeader, records: list[IndexRecord], sizes: tuple[int, int], expected: object
) -> None:
    assert recovered(header, records, sizes) == expected


def test_records_that_do_not_adjoin_are_a_bug() -> None:
    with pytest.raises(AssertionError, match="adjoin"):
        IndexPosition().after(ERR)


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)), max_size=20),
    st.integers(0, 2_000_000),
    st.data(),
)
def test_whatever_grows_and_dies_every_byte_is_covered_once(
    growth: list[tuple[int, int]], bytes_max: int, data: st.DataObject
) -> None:
    index = bytearray(RECORD_BYTES)
    sizes, position = (0, 0), IndexPosition()

    def record_at(seq: int) -> IndexRecord | None:
        return read_record(bytes(index[seq * RECORD_BYTES : (seq + 1) * RECORD_BYTES]), seq)

    for out, err in growth:
        sizes = (sizes[0] + out, sizes[1] + err)
        records, _, _ = uncovered_records(position, sizes)
        torn = data.draw(st.integers(0, len(records)))  # what a dying writer got into the file
        index += records[:torn]
        count = len(index) // RECORD_BYTES - 1
        _, position = recover(IndexHeader(), count, record_at, sizes)
        del index[position.next_seq * RECORD_BYTES :]
    records, position, _ = uncovered_records(position, sizes)
    index += records

    all_records = [record_at(seq) for seq in range(1, position.next_seq)]
    replayed = IndexPosition()
    for record in all_records:
        assert record is not None
        replayed = replayed.after(record)
    assert replayed == position
    assert position.covered == sizes

    def cost_before(seq: int) -> int:
        record = record_at(seq)
        return position.cost if record is None else record.cost

    first = first_within(bytes_max, position, (1, position.next_seq), cost_before)
    newest = max(1, position.next_seq - 1)
    assert first == newest or position.cost - cost_before(first) <= bytes_max
    assert first == 1 or position.cost - cost_before(first - 1) > bytes_max
