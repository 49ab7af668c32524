"""A record is believed when it is whole, and only then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.objects.formats import (
    HEAD_BYTES,
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

MARK = b"12345678"


def written(sort: ObjectSort, data: bytes) -> bytes:
    name = name_of(sort, data)
    head = write_head(MARK, sort, Codec.RAW, name=name, raw_bytes=len(data), stored=data)
    return head + data


@given(st.sampled_from(ObjectSort), st.binary(max_size=200))
def test_what_was_written_is_read(sort: ObjectSort, data: bytes) -> None:
    record = written(sort, data)
    head = read_head(record, MARK)

    assert head is not None
    assert head == Head(sort, Codec.RAW, len(data), len(data), name_of(sort, data), head.crc)
    assert is_intact(record[:HEAD_BYTES], head, record[HEAD_BYTES:])


@given(st.binary(max_size=100), st.data())
def test_no_byte_can_be_changed_unseen(data: bytes, draw: st.DataObject) -> None:
    record = bytearray(written(ObjectSort.BLOB, data))
    at = draw.draw(st.integers(0, len(record) - 1))
    record[at] ^= draw.draw(st.integers(1, 255))
    head = read_head(bytes(record), MARK)

    assert head is None or not is_intact(bytes(record[:HEAD_BYTES]), head, record[HEAD_BYTES:])


@given(st.binary(max_size=100), st.data())
def test_a_cut_record_is_not_believed(data: bytes, draw: st.DataObject) -> None:
    whole = written(ObjectSort.TREE, data)
    cut = whole[: draw.draw(st.integers(0, len(whole) - 1))]
    head = read_head(cut, MARK)

    assert head is None or not is_intact(cut[:HEAD_BYTES], head, cut[HEAD_BYTES:])


@given(st.binary(max_size=100))
def test_no_two_sorts_share_a_name(data: bytes) -> None:
    assert len({name_of(sort, data) for sort in ObjectSort}) == len(ObjectSort)


def test_a_record_of_another_segment_is_none_of_this_one() -> None:
    assert read_head(written(ObjectSort.BLOB, b"data"), b"87654321") is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (segment_head(MARK), MARK),
        (segment_head(MARK) + b"more", MARK),
        (segment_head(MARK)[:-1], None),
        (b"", None),
        (b"HFSEG\0\0\2" + MARK, None),
        (bytes(SEGMENT_HEAD_BYTES), None),
    ],
)
def test_a_segment_says_what_it_is(data: bytes, expected: bytes | None) -> None:
    assert read_segment_head(data) == expected
