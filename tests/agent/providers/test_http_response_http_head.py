"""Heads are read in one way only, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.providers.http_response import Head, Malformed, read_head, write_head


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"HTTP/1.1 200 OK", Head(200, {})),
        (b"HTTP/1.1 200", Head(200, {})),
        (b"HTTP/1.1 429 ", Head(429, {})),
        (b"HTTP/1.0 200 OK", Head(200, {}, is_oldest=True)),
        (b"HTTP/1.1 200 OK\r\nA: b", Head(200, {"a": "b"})),
        (b"HTTP/1.1 200 OK\r\nA:\t b c \t", Head(200, {"a": "b c"})),
        (b"HTTP/1.1 200 OK\r\nA:", Head(200, {"a": ""})),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2", Head(200, {"a": "1, 2"})),
        (b"HTTP/1.1 200 OK\r\nA: \xe9", Head(200, {"a": "\xe9"})),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", Head(200, {"content-length": "5"})),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5", Head(200, {"content-length": "5"})),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5",
            Head(200, {"content-length": "5"}),
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked",
            Head(200, {"transfer-encoding": "Chunked"}),
        ),
    ],
)
def test_what_is_clear_is_read(data: bytes, expected: Head) -> None:
    assert read_head(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/2 200",
        b"HTTP/1.2 200 OK",
        b"HTTP/1.1  200 OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 600 OK",
        b"HTTP/1.1 \xb2\xb0\xb0 OK",
        b"HTTP/1.1 200 O\x00K",
        b" HTTP/1.1 200 OK",
        b"HTTP/1.1 101 Switching Protocols",
        b"HTTP/1.1 200 OK\r\nno header",
        b"HTTP/1.1 200 OK\r\n: nameless",
        b"HTTP/1.1 200 OK\r\nA : space before the colon",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded",
        b"HTTP/1.1 200 OK\r\nA: b\nC: d",
        b"HTTP/1.1 200 OK\r\nA: b\rC: d",
        b"HTTP/1.1 200 OK\r\nA: \x00",
        b"HTTP/1.1 200 OK\r\n\xe9: b",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6",
        b"HTTP/1.1 200 OK\r\nContent-Length: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5_0",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x5",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1111111111111111111",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x0bchunked",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding:",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_head(data)


@pytest.mark.parametrize(
    ("data", "length", "is_last"),
    [
        (b"HTTP/1.1 200 OK", None, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7", 7, False),
        (b"HTTP/1.1 204 No\r\nContent-Length: 7", 0, False),
        (b"HTTP/1.1 304 No\r\nTransfer-Encoding: chunked", 0, False),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive", None, False),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", None, True),
        (b"HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: y, close", None, True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", None, True),
    ],
)
def test_what_a_head_means(data: bytes, length: int | None, is_last: bool) -> None:
    head = read_head(data)

    assert (head.length, head.is_last) == (length, is_last)


def test_a_request_is_written() -> None:
    written = write_head("POST", "/v1/x", {"host": "h", "content-length": "3"})

    assert written == b"POST /v1/x HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n"


@pytest.mark.parametrize("evil", ["a\r\nb: c", "a\nb", "a\rb", "a\x00b", "\xe9", "\u010a"])
def test_nothing_is_smuggled_into_a_request(evil: str) -> None:
    for target, headers in (("/", {"a": evil}), ("/", {evil: "a"}), (evil, {"a": "b"})):
        with pytest.raises(Malformed) as raised:
            write_head("POST", target, headers)
        assert evil not in str(raised.value)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_bytes_are_a_head_or_refused(first: bytes, rest: bytes) -> None:
    for data in (first, b"HTTP/1.1 200 OK\r\n" + first, b"HTTP/1.1 200 OK\r\n" + first + rest):
        try:
            head = read_head(data)
        except Malformed:
            continue
        assert not any(set(value) & set("\r\n\x00") for value in head.headers.values())
