"""How a page looks, and to whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.render.style import FINE, PLAIN, WIDTH_LEAST, WIDTH_MOST, Look, Signs, Tone, look


@pytest.mark.parametrize(
    ("wanted", "is_terminal", "colourless", "expected"),
    [
        ("auto", True, False, True),
        ("auto", True, True, False),
        ("auto", False, False, False),
        ("always", False, True, True),
        ("never", True, False, False),
    ],
)
def test_colour(wanted: str, is_terminal: bool, colourless: bool, expected: bool) -> None:
    found = look(
        wanted=wanted, is_terminal=is_terminal, colourless=colourless, encoding="utf-8", columns=80
    )

    assert found.is_coloured is expected
    assert ("\x1b" in found.paint("x", Tone.GOOD)) is expected


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", FINE), ("ascii", PLAIN), ("latin-1", PLAIN), ("no such", PLAIN)],
)
def test_signs_are_those_that_can_be_written(encoding: str, expected: Signs) -> None:
    found = look(wanted="auto", is_terminal=True, colourless=False, encoding=encoding, columns=80)

    assert found.signs == expected


@pytest.mark.parametrize(
    ("columns", "is_terminal", "width"),
    [(80, True, 80), (5, True, WIDTH_LEAST), (500, True, WIDTH_MOST), (40, False, WIDTH_MOST)],
)
def test_width(columns: int, is_terminal: bool, width: int) -> None:
    found = look(
        wanted="auto",
        is_terminal=is_terminal,
        colourless=False,
        encoding="utf-8",
        columns=columns,
    )

    assert found.width == width


@given(st.text("ab -", max_size=300), st.integers(30, 100), st.integers(0, 12))
def test_wrapping_loses_no_word(text: str, width: int, indent: int) -> None:
    lines = Look(width, is_coloured=False, signs=PLAIN).wrap(text, indent=indent)

    assert " ".join(lines).split() == text.split()
    assert [line for line in lines if len(line) > width and " " in line.strip()] == []
