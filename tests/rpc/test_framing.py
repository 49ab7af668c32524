"""Messages are cut out of a stream whole and in order, however it is chunked."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.rpc.failures import MessageTooLarge
from holdfast.rpc.framing import LineDecoder, join

TOO_LARGE = MessageTooLarge(bytes_max=8)


def read(chunks: Iterable[bytes], *, bytes_max: int = 8) -> tuple[list[bytes], object]:
    """All messages of a stream, and what remains of it or ended it."""
    lines = LineDecoder(message_bytes_max=bytes_max)
    messages = [message for chunk in chunks for message in lines.feed(chunk)]
    if lines.failure is not None:
        return messages, lines.failure
    last, partial = lines.finish()
    return messages + last, partial


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"", ([], b"")),
        (b"a\nb\n", ([b"a", b"b"], b"")),
        (b"a\r\nb\n", ([b"a", b"b"], b"")),
        (b"a\rb\r\r\n", ([b"a\rb\r"], b"")),
        (b"\n\r\n\na\n\n", ([b"a"], b"")),
        (b"a\nb", ([b"a"], b"b")),
        (b"12345678\na\n", ([b"12345678", b"a"], b"")),
        (b"a\n123456789\nb\n", ([b"a"], TOO_LARGE)),
        (b"a\n123456789", ([b"a"], TOO_LARGE)),
        (b"1234567\r\n", ([b"1234567"], b"")),
        (b"12345678\r\n", ([], TOO_LARGE)),
    ],
)
def test_a_stream_is_cut_into_messages_at_line_ends(stream: bytes, expected: object) -> None:
    assert read([stream]) == expected
    assert read(stream[n : n + 1] for n in range(len(stream))) == expected


@pytest.mark.promise("F16")
@pytest.mark.parametrize(
    ("end", "messages", "partial"),
    [
        (b'{"id":1}', [b'{"id":1}'], b""),
        (b'{"id":1}\r', [b'{"id":1}'], b""),
        (b'{"id":1} ', [b'{"id":1} '], b""),
        (b'{"id":1', [], b'{"id":1'),
        (b'{"id":NaN}', [], b'{"id":NaN}'),
        (b"12", [], b"12"),
        (b"[1]", [], b"[1]"),
        (b'{"\xff":1}', [], b'{"\xff":1}'),
        (b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}", [], b'{"a":'),
    ],
    ids=["whole", "with CR", "padded", "part", "NaN", "number", "array", "not UTF-8", "deep"],
)
def test_a_last_line_without_its_end_is_a_message_if_it_is_a_whole_object(
    end: bytes, messages: list[bytes], partial: bytes
) -> None:
    got, rest = read([b"{}\n" + end], bytes_max=2**20)

    assert isinstance(rest, bytes)
    assert (got, rest[: len(partial)]) == ([b"{}", *messages], partial)


pieces = st.sampled_from([b"\n", b"\r\n", b"\r", b"{}", b'{"id":1}', b"12345678", b"123456789"])


@given(st.lists(pieces).map(b"".join), st.data())
def test_any_chunking_gives_the_same_messages(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    edges = [0, *cuts, len(stream)]

    chunks = [stream[start:end] for start, end in pairwise(edges)]

    assert read(chunks) == read([stream])


@given(st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b" ").replace(b"\r", b" "))))
def test_what_is_joined_is_cut_into_the_same_messages(messages: list[bytes]) -> None:
    assert read([join(messages)], bytes_max=2**20) == (messages, b"")


def test_a_message_of_two_lines_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="one line"):
        join([b"{}", b"{\n}"])


def test_after_too_large_a_message_nothing_comes_out() -> None:
    lines = LineDecoder(message_bytes_max=8)
    lines.feed(b"123456789")

    assert (lines.feed(b"\n{}\n"), lines.failure) == ([], TOO_LARGE)


@pytest.mark.promise("F18")
@pytest.mark.parametrize("chunk_bytes", [7, 2**16])
def test_an_unfinished_line_is_never_held_beyond_the_limit_and_one_read(chunk_bytes: int) -> None:
    lines, limit = LineDecoder(message_bytes_max=2**20), 2**20
    chunk = b"x" * chunk_bytes
    tracemalloc.start()
    try:
        while lines.failure is None:
            lines.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # A buffer that grows in place is an eighth larger than what is in it, and while it moves
    # the allocator counts old and new.
    assert peak < 2.5 * limit


@pytest.mark.promise("F18")
def test_a_long_line_costs_time_in_proportion_to_its_length() -> None:
    def seconds(mebibytes: int) -> float:
        lines, chunk = LineDecoder(message_bytes_max=2**30), b"x" * 2**16
        start = time.process_time()
        for _ in range(16 * mebibytes):
            lines.feed(chunk)
        assert len(lines.feed(b"\n")[0]) == mebibytes * 2**20
        return time.process_time() - start

    short, long = min(seconds(12) for _ in range(3)), seconds(96)

    assert long < 5 * 8 * short + 0.1
