"""Events come out the same, wherever the chunks are cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.providers.stream import EventReader, Overlong, ServerEvent


def read(text: bytes, *cuts: int) -> list[ServerEvent]:
    """Read a text that is cut at these places."""
    reader = EventReader()
    edges = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    return [event for piece in pieces for event in reader.feed(piece)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"data: a\n\n", [ServerEvent("", b"a")]),
        (b"data:a\n\n", [ServerEvent("", b"a")]),
        (b"data:  a\n\n", [ServerEvent("", b" a")]),
        (b"event: x\ndata: a\n\n", [ServerEvent("x", b"a")]),
        (b"data: a\r\rdata: b\r\n\r\n", [ServerEvent("", b"a"), ServerEvent("", b"b")]),
        (b"data: a\ndata: b\n\n", [ServerEvent("", b"a\nb")]),
        (b"data\n\n", [ServerEvent("", b"")]),
        (b": a comment\n\ndata: a\n\n", [ServerEvent("", b"a")]),
        (b"event: x\n\ndata: a\n\n", [ServerEvent("", b"a")]),
        (b"id: 7\nretry: 10\nfoo: bar\ndata: a\n\n", [ServerEvent("", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("", b"a")]),
        (b"data: a\n", []),
        (b"data: a", []),
        (b"", []),
        (b"\xef\xbb", []),
        (b"event: \xff\ndata: \xff\n\n", [ServerEvent("\ufffd", b"\xff")]),
    ],
)
def test_events_are_read(text: bytes, expected: list[ServerEvent]) -> None:
    assert read(text) == expected
    assert read(text, *range(len(text) + 1)) == expected
    assert read(text, *(2 * list(range(len(text) + 1)))) == expected


LINE = st.one_of(
    st.sampled_from([b"", b"data", b":", b"data: [DONE]", b"event: x"]),
    st.binary(max_size=12).map(lambda part: b"data: " + part),
    st.binary(max_size=12),
)
TEXT = st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r", b"\r\n"]))).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


@settings(deadline=None)
@given(text=TEXT, mark=st.booleans(), data=st.data())
def test_it_does_not_matter_where_chunks_end(text: bytes, mark: bool, data: st.DataObject) -> None:
    text = b"\xef\xbb\xbf" + text if mark else text
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))

    assert read(text, *cuts) == read(text)


@pytest.mark.parametrize("text", [b"data: " + b"a" * 200, b"data: a\n" * 60, b":" + b"c" * 200])
def test_what_has_no_end_is_not_held(text: bytes) -> None:
    reader = EventReader(event_bytes_max=100)

    with pytest.raises(Overlong):
        for at in range(len(text)):
            reader.feed(text[at : at + 1])


def test_much_in_small_events_is_no_fault() -> None:
    reader = EventReader(event_bytes_max=100)

    assert sum(len(reader.feed(b"data: 123456789\n\n")) for _ in range(1000)) == 1000


def test_the_time_it_takes_grows_with_the_bytes_and_no_more() -> None:
    """A megabyte in a line that comes in pieces of ten bytes is no quadratic work."""

    def took(size: int) -> float:
        reader, piece = EventReader(), b"0123456789"
        reader.feed(b"data: ")
        began = time.process_time()
        for _ in range(size // len(piece)):
            reader.feed(piece)
        assert len(reader.feed(b"\n\n")[0].data) == size
        return time.process_time() - began

    small, large = min(took(100_000) for _ in range(3)), min(took(1_000_000) for _ in range(3))
    assert large < 40 * small
