"""The end of a text is kept, readable and in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.framing import PARTIAL_BYTES, TailBuffer, excerpt


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([], ""),
        ([b"short"], "short"),
        ([b"one\n", b"two\n"], "one\ntwo\n"),
        ([b"first\nsecond\n"], "second\n"),
        ([b"one long line"], "one long line"[-8:]),
        ([b"a very long line\n"], "ng line\n"),
        ([b"\xff\xfe\n"], "\\xff\\xfe\n"),
    ],
)
def test_the_tail_begins_with_a_line_and_can_be_read(chunks: list[bytes], text: str) -> None:
    tail = TailBuffer(bytes_max=8)
    for chunk in chunks:
        tail.feed(chunk)

    assert tail.text() == text


@pytest.mark.promise("F17")
@given(st.lists(st.binary(max_size=40).map(lambda data: data.hex().encode())))
def test_the_tail_is_the_end_of_what_was_fed(chunks: list[bytes]) -> None:
    tail = TailBuffer(bytes_max=16)
    for chunk in chunks:
        tail.feed(chunk)

    assert tail.text() == b"".join(chunks)[-16:].decode()


@pytest.mark.promise("F16")
def test_an_excerpt_says_how_much_was_left_out() -> None:
    assert excerpt(b'{"id":\xff') == '{"id":\\xff'
    assert excerpt(b"x" * PARTIAL_BYTES) == "x" * PARTIAL_BYTES
    assert excerpt(b"x" * (PARTIAL_BYTES + 5)) == "x" * PARTIAL_BYTES + "… and 5 bytes more"
