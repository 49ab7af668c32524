"""A record is one line of JSON that nothing in its content can imitate."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.world.failures import RecordRefused
from holdfast.world.journal_format import (
    MARKER,
    RECORD_BYTES_MAX,
    Encoded,
    JournalRecord,
    accept_record,
    encode_record,
    write_line,
    write_lines,
)

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["{ ", '{ "seq":', '{ "', "\n", "\0"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("{ "), inner),
)


def test_a_line_is_what_the_format_says() -> None:
    assert (
        write_line(JournalRecord(7, 2, 1, b'{"any":"JSON"}'))
        == b'{ "seq":7,"epoch":2,"version":1,"record":{"any":"JSON"},"crc":"770af622"}\n'
    )


def test_an_opening_differs_in_its_word_and_its_checksum() -> None:
    assert (
        write_line(JournalRecord(7, 2, 1, b"{}", is_opening=True))
        == b'{ "seq":7,"epoch":2,"version":1,"opening":{},"crc":"c2442835"}\n'
    )


def test_a_batch_is_its_lines() -> None:
    batch = [encode_record("a"), encode_record("b")]

    assert write_lines(batch, first=5, epoch=2, version=3) == b"".join(
        [write_line(JournalRecord(5, 2, 3, b'"a"')), write_line(JournalRecord(6, 2, 3, b'"b"'))]
    )


@given(ANY_JSON)
def test_no_value_contains_the_beginning_of_a_line(value: object) -> None:
    line = write_line(JournalRecord(1, 1, 1, encode_record(value)))

    assert line.count(MARKER) == 1
    assert line.count(b"\n") == 1
    assert json.loads(line)["record"] == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":1', "Input data was truncated"),
        (b"1 2", "JSON is malformed: trailing characters (byte 3)"),
        (b"", "Input data was truncated"),
        (b'{"a":\n1}', "it is not compact"),
        (b'[{ "seq":1}]', "it is not compact"),
        (b"NaN", "JSON is malformed: invalid character (byte 0)"),
        (
            b'"\xff"',
            "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte",
        ),
        (b'"%b"' % (b"x" * RECORD_BYTES_MAX), f"it is longer than {RECORD_BYTES_MAX} bytes"),
    ],
)
def test_what_no_line_can_hold_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RecordRefused) as raised:
        accept_record(data)

    assert raised.value == RecordRefused(reason=reason)


@pytest.mark.parametrize("value", ["\ud800", object(), {1.5: 1, (): 2}, msgspec.Raw(b"[\n]")])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(RecordRefused):
        encode_record(value)


class Measured(msgspec.Struct):
    """Holds a number, as a record may."""

    number: object
    rest: object = None


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda number: number,
        lambda number: [1, {"a": (None, number)}],
        lambda number: {2: number, 1.5: None},
        lambda number: Measured(number, {"when": datetime(2026, 1, 1, tzinfo=UTC)}),
        lambda number: [msgspec.Raw(b"null"), number],
    ],
)
def test_a_number_that_json_lacks_is_refused_and_not_written_as_null(
    number: float, wrapped: Callable[[float], object]
) -> None:
    with pytest.raises(RecordRefused, match="Out of range float"):
        encode_record(wrapped(number))


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ([None, 1.5], b"[null,1.5]"),
        ({"null": "null"}, b'{"null":"null"}'),
        (Measured(1), b'{"number":1,"rest":null}'),
        ([msgspec.Raw(b'{"a":null}'), None], b'[{"a":null},null]'),
        ({1: None, 2**70: b"\0"}, b'{"1":null,"1180591620717411303424":"AA=="}'),
        ([Decimal("NaN"), None], b'["NaN",null]'),
    ],
)
def test_a_null_that_was_meant_is_kept(value: object, data: bytes) -> None:
    assert encode_record(value) == data


@given(st.recursive(st.none() | st.floats(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_no_value_changes_on_its_way_into_a_record(value: object) -> None:
    try:
        data = encode_record(value)
    except RecordRefused:
        with pytest.raises(ValueError, match="Out of range"):
            json.dumps(value, allow_nan=False)
    else:
        assert json.loads(data) == json.loads(json.dumps(value))


def test_depth_is_refused_by_name() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(RecordRefused):
        encode_record(deep)
    with pytest.raises(RecordRefused):
        accept_record(b"[" * 100_000 + b"]" * 100_000)


def test_what_is_accepted_is_unchanged() -> None:
    assert accept_record(b'{"a":[1,2]}') == Encoded(b'{"a":[1,2]}')
