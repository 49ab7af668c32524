"""Every call has a result in the end, and it says why if it has none of its own."""

from __future__ import annotations

import pytest

from holdfast.agent.history.tree import (
    ABORTED,
    INTERRUPTED,
    NOT_STARTED,
    ConversationTree,
    repair_notice,
    repairs,
)
from holdfast.agent.model import (
    MessageAppended,
    ModelMessage,
    ToolCall,
    ToolCallRepaired,
    ToolCallStarted,
    ToolMessage,
)

pytestmark = pytest.mark.promise("A8")


def waiting() -> ConversationTree:
    """Three calls: one has its result, one has begun, one has not."""
    tree = ConversationTree()
    calls = tuple(ToolCall(each, "look", "{}") for each in ("c1", "c2", "c3"))
    tree.take(MessageAppended("1", "", ModelMessage(calls=calls)))
    for call in ("c1", "c2"):
        tree.take(ToolCallStarted(call))
    tree.take(MessageAppended("2", "1", ToolMessage("c1", "r")))
    return tree


def test_after_a_crash_it_is_said_what_may_have_happened() -> None:
    assert repairs(waiting()) == (
        ToolCallRepaired("c2", INTERRUPTED),
        ToolCallRepaired("c3", NOT_STARTED),
    )
    assert "may or may not have completed" in INTERRUPTED


def test_after_an_abort_it_is_said_who_wanted_it() -> None:
    begun, unbegun = repairs(waiting(), is_aborted=True)

    assert begun.text.startswith(f"{ABORTED} It had begun")
    assert unbegun == ToolCallRepaired("c3", ABORTED)


def test_what_is_repaired_stays_so() -> None:
    tree = waiting()
    for memo in repairs(tree):
        tree.take(memo)

    assert repairs(tree) == ()
    assert [each.message.text for each in tree.line.said][1:] == ["r", INTERRUPTED, NOT_STARTED]


def test_the_person_is_told_how_many() -> None:
    assert repair_notice(1).startswith("1 tool call had")
    assert repair_notice(2).startswith("2 tool calls had")
