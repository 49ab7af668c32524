"""A text is taken apart and put together again without a change, and new lines fit in."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.tools.documents import Document, TextLine, is_binary, lines_in, parsed, restyled

PIECES = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"\xff", b"\xef\xbb\xbf", "é".encode()])
)


@settings(deadline=None)
@given(PIECES.map(b"".join))
def test_any_bytes_come_back(data: bytes) -> None:
    assert parsed(data).encoded() == data


@pytest.mark.parametrize(
    ("data", "document"),
    [
        (b"", Document(())),
        (b"a\nb", Document((TextLine("a"), TextLine("b", "")))),
        (b"a\r\n\r\nb\n", Document((TextLine("a", "\r\n"), TextLine("", "\r\n"), TextLine("b")))),
        (b"\xef\xbb\xbfa\n", Document((TextLine("a"),), has_mark=True)),
    ],
)
def test_lines(data: bytes, document: Document) -> None:
    assert parsed(data) == document


@pytest.mark.parametrize(
    ("data", "first", "beyond", "lines", "expected"),
    [
        (b"a\nb\nc\n", 1, 2, ["x", "y"], b"a\nx\ny\nc\n"),
        (b"a\r\nb\r\n", 2, 2, ["x"], b"a\r\nb\r\nx\r\n"),
        (b"a\nb", 2, 2, ["x"], b"a\nb\nx"),
        (b"a\nb", 1, 2, [], b"a"),
        (b"a\r\nb\nc\r\n", 1, 2, ["x"], b"a\r\nx\r\nc\r\n"),
        (b"a\xff\nb\n", 1, 2, ["x"], b"a\xff\nx\n"),
        (b"\xef\xbb\xbfa\n", 0, 1, ["x"], b"\xef\xbb\xbfx\n"),
        (b"a\n", 0, 1, [], b""),
    ],
)
def test_lines_in_place_of_others(
    data: bytes, first: int, beyond: int, lines: list[str], expected: bytes
) -> None:
    assert parsed(data).replaced(first, beyond, lines).encoded() == expected


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\r\nb\n\n", ["a", "b", ""]),
    ],
)
def test_what_somebody_wrote(text: str, lines: list[str]) -> None:
    assert lines_in(text) == lines


@pytest.mark.parametrize(
    ("text", "like", "data"),
    [
        ("a\nb", None, b"a\nb"),
        ("a\nb\n", b"x\r\n", b"a\r\nb\r\n"),
        ("a", b"\xef\xbb\xbfx\n", b"\xef\xbb\xbfa"),
        ("a\r\nb\n", b"x\ny\n", b"a\r\nb\n"),
    ],
)
def test_a_whole_text_in_the_style_of_the_one_before(
    text: str, like: bytes | None, data: bytes
) -> None:
    assert restyled(text, None if like is None else parsed(like)) == data


def test_what_is_no_text() -> None:
    assert is_binary(b"a\0b")
    assert not is_binary("é\n".encode())
