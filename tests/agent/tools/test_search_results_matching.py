"""Matching lines are found with those around them, each once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.tools.search_results import LineMatch, compiled, hits_in


@pytest.mark.parametrize(
    ("data", "pattern", "around", "hits"),
    [
        (b"a\nb\nc\n", "b", 0, [LineMatch(2, "b", True)]),
        (b"a\r\nb\r\n", "a$", 1, [LineMatch(1, "a", True), LineMatch(2, "b", False)]),
        (
            b"b\nx\nb",
            "b",
            1,
            [LineMatch(1, "b", True), LineMatch(2, "x", False), LineMatch(3, "b", True)],
        ),
        (b"caf\xe9", "caf.", 0, [LineMatch(1, "caf\udce9", True)]),
        (b"", "x", 2, []),
        (b"\n", "^$", 0, [LineMatch(1, "", True)]),
    ],
)
def test_hits(data: bytes, pattern: str, around: int, hits: list[LineMatch]) -> None:
    assert list(hits_in(data, re.compile(pattern), around=around)) == hits


@settings(deadline=None)
@given(st.lists(st.sampled_from("ab"), max_size=20), st.integers(0, 4))
def test_what_is_near_a_match_is_shown_once(lines: list[str], around: int) -> None:
    hits = list(hits_in("\n".join(lines).encode(), re.compile("a"), around=around))

    near = [
        n
        for n in range(len(lines))
        if any(
            "a" in lines[max(0, n - around) : n + around + 1][k]
            for k in range(len(lines[max(0, n - around) : n + around + 1]))
        )
    ]
    assert [hit.number - 1 for hit in hits] == near
    assert all(hit.is_match == ("a" in hit.text) for hit in hits)


def test_a_pattern_can_be_plain_text() -> None:
    assert compiled("a.(", is_literal=True, ignores_case=True).search("xA.(x")
    assert not compiled("a.", is_literal=True, ignores_case=False).search("ab")
