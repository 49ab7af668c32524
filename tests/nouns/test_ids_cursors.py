"""Positions compare within one log and read back from their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import Cursor, CursorInvalid

logs = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
sequences = st.integers(0, 2**63 - 1)


@given(logs, sequences)
def test_every_cursor_comes_back_from_its_text(log: str, sequence: int) -> None:
    cursor = Cursor(log, sequence)

    assert str(cursor) == f"{log}:{sequence}"
    assert Cursor.parse(str(cursor)) == cursor


@given(sequences, sequences)
def test_positions_of_one_log_compare_by_sequence(one: int, other: int) -> None:
    a, b = Cursor("log", one), Cursor("log", other)

    assert (a < b, a <= b, a == b, a > b, a >= b) == (
        one < other,
        one <= other,
        one == other,
        one > other,
        one >= other,
    )


def test_positions_of_two_logs_have_no_order() -> None:
    assert Cursor("a", 1) != Cursor("b", 1)
    with pytest.raises(AssertionError, match="two logs"):
        assert Cursor("a", 1) < Cursor("b", 2)


@pytest.mark.parametrize(("log", "sequence"), [("", 1), ("a:b", 1), ("a", -1), ("a", 2**63)])
def test_a_position_that_has_no_text_is_a_bug(log: str, sequence: int) -> None:
    with pytest.raises(AssertionError, match="not a position"):
        Cursor(log, sequence)


def test_a_text_that_is_no_position_is_refused_harmlessly() -> None:
    with pytest.raises(CursorInvalid) as raised:
        Cursor.parse("log:\x1b1")

    assert raised.value == CursorInvalid(cursor="log:\\x1b1")
