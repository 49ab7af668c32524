"""However much is said, little is held, and it is the beginning and the end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.tools.process_output import (
    OutputOffset,
    OutputOffsets,
    OutputWindow,
    legible,
    page_of,
)

LEFT_OUT = re.compile(r"\n… \((\d+) bytes are left out; recall them from offset (\d+)\)\n")


@settings(deadline=None)
@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 20), st.integers(1, 20))
def test_the_beginning_and_the_end_are_held(sizes: list[int], head: int, tail: int) -> None:
    whole = bytes(ord("a") + n % 26 for n in range(sum(sizes)))
    window, at = OutputWindow(head_max=head, tail_max=tail), 0
    for size in sizes:
        window.feed(whole[at : at + size])
        at += size

    assert window.left_out == max(0, len(whole) - head - tail)
    text = window.take()

    if len(whole) <= head + tail:
        assert text == whole.decode()
    else:
        left_out = len(whole) - head - tail
        begins, ends = whole[:head].decode(), whole[-tail:].decode()
        told = f"… ({left_out} bytes are left out; recall them from offset {head})"
        assert text == f"{begins}\n{told}\n{ends}"
    assert window.take() == ""


def test_a_second_look_shows_only_what_is_new() -> None:
    window = OutputWindow(head_max=2, tail_max=2)
    window.feed(b"12345")
    window.take()
    window.feed(b"abcdef")

    assert window.take() == "ab\n… (2 bytes are left out; recall them from offset 7)\nef"


@settings(deadline=None)
@given(st.lists(st.integers(0, 200_000), max_size=60), st.data())
def test_a_place_is_found_that_is_not_behind(sizes: list[int], data: st.DataObject) -> None:
    places, ends = OutputOffsets(), [0]
    for seq, size in enumerate(sizes, start=1):
        places.note(seq, size)
        ends.append(ends[-1] + size)
    offset = data.draw(st.integers(0, ends[-1]))

    found = places.before(offset)

    assert found.offset <= offset
    assert ends[found.seq] == found.offset


def test_places_are_few_however_much_is_said() -> None:
    places = OutputOffsets()
    for seq in range(1, 20_001):
        places.note(seq, 100_000)

    assert places.total == 2_000_000_000
    assert places.before(0) == OutputOffset(0, 0)
    near = places.before(1_000_000_000)
    assert near.offset == near.seq * 100_000
    assert 1_000_000_000 - near.offset < 8_000_000


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\r\nb\n", "a\nb\n"),
        (b"10%\r50%\r100%\ndone", "100%\ndone"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b(By", "red xy"),
        (b"a\x08\x00b\tc\xff", "ab\tc�"),
        (b"\r", ""),
    ],
)
def test_what_only_terminals_understand_is_gone(data: bytes, text: str) -> None:
    assert legible(data) == text


@pytest.mark.parametrize(
    ("data", "page"),
    [
        (b"short", b"short"),
        (b"ab\ncd\nefg", b"ab\ncd\n"),
        (b"abcdefghij", b"abcdefgh"),
        ("abcdefgü".encode(), b"abcdefg"),
        ("abcde€gh".encode(), "abcde€".encode()),
        ("abcdef€gh".encode(), b"abcdef"),
        (b"\x80" * 12, b"\x80" * 4),
    ],
)
def test_a_page_ends_with_a_line_or_at_least_with_a_character(data: bytes, page: bytes) -> None:
    assert page_of(data, 8) == page
