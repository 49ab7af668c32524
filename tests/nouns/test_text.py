"""Text from outside never steers a terminal."""

from __future__ import annotations

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns.text import cut, printable, prose


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, ünïcode, 日本", "plain, ünïcode, 日本"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("a\rb\x08c\x7f", "a\\rb\\x08c\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U000e0041", "\\U000e0041"),
        ("half \ud800", "half \\ud800"),
        ("two\nlines", "two\\nlines"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_what_is_kept_is_kept() -> None:
    assert printable("two\nlines\r", keep="\n") == "two\nlines\\r"


@given(st.text(st.characters()))
def test_nothing_unprintable_is_left(text: str) -> None:
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("日本\u3000語 12\u202f000\xa0€", "日本\u3000語 12\u202f000\xa0€"),
        (
            "👩\u200d💻 ❤\ufe0f \u0645\u06cc\u200c\u062e",
            "👩\u200d💻 ❤\ufe0f \u0645\u06cc\u200c\u062e",
        ),
        ("\x1b]8;;http://x\x1b\\\\", "\\x1b]8;;http://x\\x1b\\\\"),
        ("a\r\nb\x08\x9b1m", "a\\r\nb\\x08\\x9b1m"),
        ("\u202e\u2066\u200f\u061c", "\\u202e\\u2066\\u200f\\u061c"),
        ("\U000e0041\u200b\ufeff\u2028\x85", "\\U000e0041\\u200b\\ufeff\\u2028\\x85"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_prose_keeps_what_prose_needs(text: str, expected: str) -> None:
    assert prose(text) == expected


@given(st.lists(st.text(st.characters(), max_size=3)))
def test_it_does_not_matter_where_a_text_is_cut(chunks: list[str]) -> None:
    assert "".join(map(prose, chunks)) == prose("".join(chunks))


@given(st.text(st.characters()))
def test_prose_never_steers(text: str) -> None:
    control = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

    assert {c for c in prose(text) if category(c) in control} <= set("\n\t\u200c\u200d")


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("short", 5, "short"),
        ("shorter", 5, "shor…"),
        ("日本語", 6, "日本語"),
        ("日本語です", 6, "日本…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("two words", 5, "two…"),
    ],
)
def test_cut_text_fits_its_cells(text: str, cells: int, expected: str) -> None:
    assert cut(text, cells, more="…") == expected
