"""Single messages: every shape that arrives, and every value that must not leave."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.rpc.failures import Unencodable
from holdfast.rpc.model import Answer, Dialect, ErrorReply, MalformedMessage, Notification, Request
from holdfast.rpc.peer import (
    Message,
    parse_message,
    write_answer,
    write_notification,
    write_refusal,
    write_request,
)

PLAIN, STANDARD = Dialect(), Dialect(jsonrpc=True)


def flat(message: Message) -> tuple[object, ...]:
    """A message as plain values: raw bytes compare by identity."""
    return type(message).__name__, *(
        bytes(value) if isinstance(value, Raw) else value
        for value in (getattr(message, name) for name in message.__struct_fields__)
        if not isinstance(value, msgspec.UnsetType)
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"method":"a"}', ("Notification", "a", b"")),
        (b'{"method":"a","params":[1, 2]}', ("Notification", "a", b"[1, 2]")),
        (b'{"jsonrpc":"2.0","method":"a","emittedAtMs":1}', ("Notification", "a", b"")),
        (b'{"id":1,"method":"a"}', ("Request", 1, "a", b"")),
        (b'{"id":"x","method":"a","params":{}}', ("Request", "x", "a", b"{}")),
        (b'{"id":7,"result":null}', ("Answer", 7, b"null")),
        (b'{"result":{"a":1},"id":"s"}', ("Answer", "s", b'{"a":1}')),
        (b'{"id":1,"error":{"code":-1,"message":"m"}}', ("ErrorReply", 1, -1, "m", None)),
        (b'{"id":1,"error":{"code":-1,"message":"m","data":[1]}}', ("ErrorReply", 1, -1, "m", [1])),
        (b'{"id":1,"error":"plain text"}', ("ErrorReply", 1, 0, '"plain text"', None)),
        (b'{"id":1,"error":{"code":"odd"}}', ("ErrorReply", 1, 0, '{"code":"odd"}', None)),
        (b' {"id":1,"result":2}\r', ("Answer", 1, b"2")),
    ],
)
def test_every_shape_is_sorted_out(line: bytes, expected: tuple[object, ...]) -> None:
    assert flat(parse_message(line)) == expected


@pytest.mark.promise("F9")
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"method":"a","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"method":"\xff"}',
        b'{"method":"\\ud800"}',
        b'{"method":"a","params":NaN}',
        b'{"id":1,"result":Infinity}',
        b'{"id":1.5,"result":1}',
        b'{"id":true,"method":"a"}',
        b'{"id":null,"result":1}',
        b'{"id":[1],"result":1}',
        b'{"result":1}',
        b'{"error":{"code":1,"message":"no id"}}',
        b'{"id":1}',
        b'{"id":1,"method":5}',
        b'{"id":' + b"9" * 1000 + b',"method":"a"}',
        b'{"id":"' + b"x" * 1000 + b'","method":"a"}',
        b'{"method":"a"',
        b'{"method":"a"}{"method":"b"}',
        b"\x00\x00\x00",
        b"plain noise",
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_is_no_message_is_named_and_survived(line: bytes) -> None:
    assert isinstance(parse_message(line), MalformedMessage)


@given(st.binary())
def test_no_bytes_at_all_raise(line: bytes) -> None:
    parse_message(line)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("dialect", [PLAIN, STANDARD], ids=["plain", "jsonrpc"])
@given(id_=st.integers(0, 2**53) | st.text("abc", min_size=1, max_size=9), value=json_values)
def test_what_is_written_is_read_back(id_: int | str, value: object, dialect: Dialect) -> None:
    decode = msgspec.json.decode

    request = parse_message(write_request(id_, "m", value, dialect))
    answer = parse_message(write_answer(id_, value, dialect))
    refusal = parse_message(write_refusal(id_, {"code": 3, "message": "m", "data": value}, dialect))
    notification = parse_message(write_notification("m", value, dialect))

    assert isinstance(request, Request)
    assert isinstance(answer, Answer)
    assert isinstance(notification, Notification)
    assert (request.id, answer.id) == (id_, id_)
    assert decode(bytes(request.params) or b"null") == value
    assert decode(answer.result) == value
    assert decode(bytes(notification.params) or b"null") == value
    assert refusal == ErrorReply(id_, 3, "m", value)


def test_the_standard_dialect_says_its_version() -> None:
    assert write_request(1, "m", None, STANDARD) == b'{"jsonrpc":"2.0","id":1,"method":"m"}'
    assert write_notification("m", {}, PLAIN) == b'{"method":"m","params":{}}'


class Point(msgspec.Struct):
    """Some params with a type of their own."""

    x: float
    note: str | None = None


@pytest.mark.parametrize(
    "params",
    [
        math.nan,
        [1.0, math.inf],
        {"a": {"b": [-math.inf]}},
        Point(math.nan),
        {"a": "\ud800"},
        {"a": object()},
        {(1, 2): 3},
    ],
)
def test_what_a_strict_reader_would_drop_is_refused_before_it_leaves(params: object) -> None:
    with pytest.raises(Unencodable) as raised:
        write_request(1, "m", params, PLAIN)

    assert raised.value.method == "m"


def test_null_itself_is_no_reason_to_refuse() -> None:
    assert write_notification("m", Point(1.0), PLAIN) == (
        b'{"method":"m","params":{"x":1.0,"note":null}}'
    )


def test_what_is_json_already_goes_as_it_is() -> None:
    params = msgspec.Raw(b'{"nothing":null}')

    assert write_notification("m", params, Dialect()) == b'{"method":"m","params":{"nothing":null}}'
