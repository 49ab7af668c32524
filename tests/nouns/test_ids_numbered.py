"""A word and a number have exactly one text between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns.ids import NUMBER_MAX, split


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("log:0", ("log", 0)),
        ("ses_01.a-B:12", ("ses_01.a-B", 12)),
        (f"a:{NUMBER_MAX}", ("a", NUMBER_MAX)),
        (f"a:{NUMBER_MAX + 1}", None),
        ("a" * 128 + ":1", ("a" * 128, 1)),
        ("a" * 129 + ":1", None),
        ("", None),
        ("a", None),
        ("a:", None),
        (":1", None),
        ("a:-1", None),
        ("a:+1", None),
        ("a:01", None),
        ("a:1 ", None),
        ("a:1\n", None),
        ("a:1_0", None),
        ("a:\u0661", None),
        ("a:b:1", None),
        ("a b:1", None),
        ("é:1", None),
        (".a:1", None),
        ("a:" + "9" * 5000, None),
    ],
)
def test_split(text: str, pair: tuple[str, int] | None) -> None:
    assert split(text, ":") == pair


@given(st.text() | st.from_regex(r"[a-z.:]{0,3}:[0-9]{0,3}"))
def test_what_is_read_is_written_the_same(text: str) -> None:
    pair = split(text, ":")

    assert pair is None or f"{pair[0]}:{pair[1]}" == text
