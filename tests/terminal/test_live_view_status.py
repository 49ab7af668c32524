"""The status line says what fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.runners.model import UsageUpdated
from holdfast.terminal.live_view import cost_lines, fitted, meter

USED = UsageUpdated("m", 1200, 200, 30, 500, 1000, 0.126)


def test_what_is_known_is_said() -> None:
    assert meter(None) == []
    assert meter(UsageUpdated("m", 1, 0, 1)) == []
    assert meter(USED) == ["50% context", "$0.13"]
    assert cost_lines(USED) == [
        "model    m",
        "input    1,200 tokens, 200 of them cached",
        "output   30 tokens",
        "context  500 of 1,000 tokens",
        "cost     $0.1260",
    ]
    assert cost_lines(None) == ["Nothing was asked of a model yet, as far as the agent says."]


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]))), st.integers(0, 200)
)
def test_a_line_is_never_wider_than_the_window(parts: list[str], width: int) -> None:
    assert len(fitted(parts, width)) <= width


def test_the_first_parts_come_first() -> None:
    assert fitted(["idle", "codex", "50%"], 12) == "idle · codex"
