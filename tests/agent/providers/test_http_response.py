"""An answer is the same, wherever its bytes are cut."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.providers.http_response import HEAD_BYTES_MAX, AnswerReader

OK = b"HTTP/1.1 200 OK\r\n"
COUNTED = OK + b"content-length: 5\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
ENDLESS = OK + b"\r\n"


@dataclass(frozen=True, slots=True)
class Got:
    """What came of some bytes."""

    status: int | None
    body: bytes
    is_over: bool = False
    is_keepable: bool = False
    is_broken: bool = False


def read(data: bytes, *cuts: int, ends: bool = False, is_tunnel: bool = False) -> Got:
    """Read bytes that are cut at these places, and have come to their end or not."""
    reader = AnswerReader(is_tunnel=is_tunnel)
    edges = [0, *sorted(cuts), len(data)]
    body = b"".join(reader.feed(data[start:end]) for start, end in pairwise(edges))
    if ends:
        reader.end()
    status = reader.head.status if reader.head else None
    return Got(status, body, reader.is_over, reader.is_keepable, bool(reader.problem))


def whole(body: bytes, *, is_keepable: bool = True, status: int = 200) -> Got:
    return Got(status, body, is_over=True, is_keepable=is_keepable)


def broken(body: bytes = b"", status: int | None = 200) -> Got:
    return Got(status, body, is_broken=True)


CASES: list[tuple[bytes, Got]] = [
    (b"", Got(None, b"")),
    (OK, Got(None, b"")),
    (COUNTED + b"hel", Got(200, b"hel")),
    (COUNTED + b"hello", whole(b"hello")),
    (COUNTED + b"hello!", whole(b"hello", is_keepable=False)),
    (OK + b"content-length: 0\r\n\r\n", whole(b"")),
    (OK + b"connection: close\r\ncontent-length: 1\r\n\r\nx", whole(b"x", is_keepable=False)),
    (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", whole(b"x", is_keepable=False)),
    (b"HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n", whole(b"", status=204)),
    (b"HTTP/1.1 204 No\r\ntransfer-encoding: chunked\r\n\r\n", whole(b"", status=204)),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + COUNTED + b"hello", whole(b"hello")),
    (b"HTTP/1.1 103 Hints\r\na: b\r\n\r\n" * 3 + COUNTED + b"hello", whole(b"hello")),
    (b"HTTP/1.1 103 Hints\r\n\r\n", Got(None, b"")),
    (CHUNKED + b"5\r\nhello\r\n", Got(200, b"hello")),
    (CHUNKED + b"0\r\n\r\n", whole(b"")),
    (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", whole(b"hello")),
    (CHUNKED + b"005 \r\nhello\r\n1;a=b;c\r\n!\r\n000\r\n\r\n", whole(b"hello!")),
    (CHUNKED + b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", whole(b"0123456789" * 2)),
    (CHUNKED + b"1\r\nx\r\n0\r\na: b\r\nc: d\r\n\r\n", whole(b"x")),
    (CHUNKED + b"1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK", whole(b"x", is_keepable=False)),
    (ENDLESS + b"hello", Got(200, b"hello")),
    # What is wrong, and what of the body stood before it.
    (b"SSH-2.0-OpenSSH_9.9\r\n", broken(status=None)),
    (b"H\r\n", broken(status=None)),
    (b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", broken(status=None)),
    (b"\r\n" + COUNTED, broken(status=None)),
    (b"HTTP/1.1 101 Up\r\n\r\n", broken(status=None)),
    (OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", broken(status=None)),
    (OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello", broken(status=None)),
    (OK + b"a: \x00\r\n\r\n", broken(status=None)),
    (OK + b"a: " + b"x" * HEAD_BYTES_MAX, broken(status=None)),
    (OK + b"a: b\r\n" * HEAD_BYTES_MAX, broken(status=None)),
    (b"HTTP/1.1 103 Hints\r\n\r\n" * HEAD_BYTES_MAX, broken(status=None)),
    (CHUNKED + b"\r\n", broken()),
    (CHUNKED + b"x\r\n", broken()),
    (CHUNKED + b"-1\r\nx\r\n", broken()),
    (CHUNKED + b"+1\r\nx\r\n", broken()),
    (CHUNKED + b"0x1\r\nx\r\n", broken()),
    (CHUNKED + b"1_0\r\nx\r\n", broken()),
    (CHUNKED + b" 1\r\nx\r\n", broken()),
    (CHUNKED + b"1\nx\r\n0\r\n\r\n", broken()),
    (CHUNKED + b"1;\x00\r\nx\r\n", broken()),
    (CHUNKED + b"fffffffffffffffff\r\nx\r\n", broken()),
    (CHUNKED + b"1;" + b"x" * 5000 + b"\r\nx\r\n", broken()),
    (CHUNKED + b"1" * 5000, broken()),
    (CHUNKED + b"1\r\nxy\r\n0\r\n\r\n", broken(b"x")),
    (CHUNKED + b"1\r\nx0\r\n\r\n", broken(b"x")),
    (CHUNKED + b"2\r\nhi\r\nzz\r\n", broken(b"hi")),
    (CHUNKED + b"0\r\n" + b"a: b\r\n" * HEAD_BYTES_MAX, broken()),
]


@pytest.mark.parametrize(("data", "expected"), CASES)
def test_an_answer_is_read(data: bytes, expected: Got) -> None:
    near = range(len(data)) if len(data) < 400 else range(0, 8000, 1000)

    assert read(data) == expected
    assert read(data, *near) == expected
    for cut in near:
        assert read(data, cut) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", broken(status=None)),
        (OK, broken(status=None)),
        (COUNTED + b"hell", broken(b"hell")),
        (COUNTED + b"hello", whole(b"hello", is_keepable=False)),
        (CHUNKED + b"5\r\nhello\r\n", broken(b"hello")),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", broken(b"hello")),
        (ENDLESS, whole(b"", is_keepable=False)),
        (ENDLESS + b"hello", whole(b"hello", is_keepable=False)),
    ],
)
def test_the_end_is_an_end_or_a_break(data: bytes, expected: Got) -> None:
    assert read(data, ends=True) == expected
    assert read(data, *range(len(data)), ends=True) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"HTTP/1.1 200 Connected\r\n\r\n", whole(b"")),
        (b"HTTP/1.1 200 Connected\r\ncontent-length: 7\r\n\r\n", whole(b"")),
        (b"HTTP/1.0 200 Connected\r\n\r\n", whole(b"", is_keepable=False)),
        (b"HTTP/1.1 407 No\r\ncontent-length: 2\r\n\r\nno", whole(b"no", status=407)),
    ],
)
def test_a_tunnel_has_no_body(data: bytes, expected: Got) -> None:
    assert read(data, is_tunnel=True) == expected


def chunked(chunks: list[bytes]) -> bytes:
    sized = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return CHUNKED + sized + b"0\r\n\r\n"


@given(st.lists(st.binary(min_size=1, max_size=40)), st.lists(st.integers(0, 600)))
def test_whatever_is_sent_in_chunks_arrives(chunks: list[bytes], cuts: list[int]) -> None:
    data, body = chunked(chunks), b"".join(chunks)

    assert read(data, *(min(cut, len(data)) for cut in cuts)) == whole(body)


BIT = st.sampled_from(
    [
        *[b"\r\n", b"\n", b"\r", b"0", b"5", b"a: b", b";", b"\x00", b"hello", b"\r\n\r\n"],
        *[OK, b"HTTP/1.1 100 C\r\n\r\n", b"content-length: 5\r\n", b"connection: close\r\n"],
        *[b"transfer-encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"content-length: 3"],
    ]
)


@given(st.lists(BIT | st.binary(max_size=4)).map(b"".join), st.lists(st.integers(0, 400)))
def test_where_anything_is_cut_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    """Also of what is no answer: the same part of it is read, and the same judgement comes."""
    places = [min(cut, len(data)) for cut in cuts]
    for start in (b"", OK, COUNTED, CHUNKED, ENDLESS):
        moved = [cut + len(start) for cut in places]
        for ends in (False, True):
            assert read(start + data, *moved, ends=ends) == read(start + data, ends=ends)
