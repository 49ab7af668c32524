"""A record is believed when it is whole, and only then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.objects.formats import (
    HEADER_BYTES,
    SEGMENT_HEADER_BYTES,
    ObjectKind,
    RecordCodec,
    RecordHeader,
    decode_record_header,
    decode_segment_header,
    encode_record_header,
    encode_segment_header,
    is_intact,
    name_of,
)

MARK = b"12345678"


def written(kind: ObjectKind, data: bytes) -> bytes:
    name = name_of(kind, data)
    head = encode_record_header(
        MARK, kind, RecordCodec.RAW, name=name, raw_bytes=len(data), stored=data
    )
    return head + data


@given(st.sampled_from(ObjectKind), st.binary(max_size=200))
def test_what_was_written_is_read(kind: ObjectKind, data: bytes) -> None:
    record = written(kind, data)
    head = decode_record_header(record, MARK)

    assert head is not None
    assert head == RecordHeader(
        kind, RecordCodec.RAW, len(data), len(data), name_of(kind, data), head.crc
    )
    assert is_intact(record[:HEADER_BYTES], head, record[HEADER_BYTES:])


@given(st.binary(max_size=100), st.data())
def test_no_byte_can_be_changed_unseen(data: bytes, draw: st.DataObject) -> None:
    record = bytearray(written(ObjectKind.BLOB, data))
    at = draw.draw(st.integers(0, len(record) - 1))
    record[at] ^= draw.draw(st.integers(1, 255))
    head = decode_record_header(bytes(record), MARK)

    assert head is None or not is_intact(bytes(record[:HEADER_BYTES]), head, record[HEADER_BYTES:])


@given(st.binary(max_size=100), st.data())
def test_a_cut_record_is_not_believed(data: bytes, draw: st.DataObject) -> None:
    whole = written(ObjectKind.TREE, data)
    cut = whole[: draw.draw(st.integers(0, len(whole) - 1))]
    head = decode_record_header(cut, MARK)

    assert head is None or not is_intact(cut[:HEADER_BYTES], head, cut[HEADER_BYTES:])


@given(st.binary(max_size=100))
def test_no_two_sorts_share_a_name(data: bytes) -> None:
    assert len({name_of(kind, data) for kind in ObjectKind}) == len(ObjectKind)


def test_a_record_of_another_segment_is_none_of_this_one() -> None:
    assert decode_record_header(written(ObjectKind.BLOB, b"data"), b"87654321") is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (encode_segment_header(MARK), MARK),
        (encode_segment_header(MARK) + b"more", MARK),
        (encode_segment_header(MARK)[:-1], None),
        (b"", None),
        (b"HFSEG\0\0\2" + MARK, None),
        (bytes(SEGMENT_HEADER_BYTES), None),
    ],
)
def test_a_segment_says_what_it_is(data: bytes, expected: bytes | None) -> None:
    assert decode_segment_header(data) == expected
