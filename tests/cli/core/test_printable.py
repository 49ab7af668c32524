"""Text from outside never steers a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.core.printable import printable


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
