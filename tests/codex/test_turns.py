"""Which turn runs is known by the thread's news, in whatever order answer and news come."""

from __future__ import annotations

import pytest

from holdfast.codex.failures import ModelQuotaSpent
from holdfast.codex.model import CompletedTurn, UnknownEvent
from holdfast.codex.turns import TurnCollector, TurnTracker
from holdfast.codex.wire.generated import (
    AddPatchChangeKind,
    AgentMessageDeltaNotification,
    AgentMessageThreadItem,
    FileChangeThreadItem,
    FileUpdateChange,
    ItemCompletedNotification,
    ItemStartedNotification,
    McpToolCallThreadItem,
    Turn,
    TurnCompletedNotification,
    TurnError,
    TurnStartedNotification,
)
from holdfast.codex.wire.message import WireMessage

CHANGE = FileUpdateChange(AddPatchChangeKind(), "+x", "/p/x")


def began(turn: str) -> TurnStartedNotification:
    return TurnStartedNotification(Turn(turn, (), "inProgress"), "t")


def ended(turn: str, status: str = "completed", error: TurnError | None = None) -> WireMessage:
    return TurnCompletedNotification(Turn(turn, (), status, error=error), "t")


def said(text: str) -> ItemCompletedNotification:
    return ItemCompletedNotification(
        thread_id="t",
        turn_id="u",
        completed_at_ms=1,
        item=AgentMessageThreadItem(id=text, text=text),
    )


@pytest.mark.parametrize(
    ("events", "active"),
    [
        ([], None),
        ([began("a")], "a"),
        ([began("a"), ended("a")], None),
        ([began("a"), ended("b")], "a"),
        (["a"], "a"),
        (["a", began("a")], "a"),
        (["a", ended("a")], None),
        ([began("a"), ended("a"), "a"], None),
        ([began("a"), ended("a"), "b"], "b"),
        ([UnknownEvent("x")], None),
        ([began("a"), UnknownEvent("turn/completed")], None),
        ([began("a"), UnknownEvent("turn/completed"), "a"], None),
    ],
)
@pytest.mark.promise("F21")
def test_the_active_turn(events: list[WireMessage | str], active: str | None) -> None:
    turns = TurnTracker("t")
    for event in events:
        turns.started(event) if isinstance(event, str) else turns.take(event)

    assert turns.active == active


@pytest.mark.parametrize(
    ("events", "has_begun"),
    [
        (["a"], False),
        (["a", began("a")], True),
        ([began("a"), "a"], True),
        ([began("a"), ended("a"), "b"], False),
    ],
)
def test_a_turn_that_is_answered_for_begins_with_its_news(
    events: list[WireMessage | str], *, has_begun: bool
) -> None:
    turns = TurnTracker("t")
    for event in events:
        turns.started(event) if isinstance(event, str) else turns.take(event)

    assert turns.has_begun is has_begun


def test_a_turn_that_is_found_has_begun_unless_it_has_ended() -> None:
    turns = TurnTracker("t")
    turns.found("a")
    found = turns.active, turns.has_begun
    turns.take(ended("a"))
    turns.found("a")

    assert found == ("a", True)
    assert turns.active is None


def test_no_turn_is_active_after_the_end_even_if_an_answer_says_so() -> None:
    turns = TurnTracker("t")
    turns.end()
    turns.started("a")

    assert turns.active is None


def test_what_a_file_change_would_do_is_known_while_it_waits() -> None:
    turns = TurnTracker("t")
    item = FileChangeThreadItem(id="i", changes=(CHANGE,), status="inProgress")
    turns.take(ItemStartedNotification(thread_id="t", turn_id="u", started_at_ms=1, item=item))

    assert (turns.changes_of("i"), turns.changes_of("other")) == ((CHANGE,), ())
    turns.take(ItemCompletedNotification(thread_id="t", turn_id="u", completed_at_ms=1, item=item))
    assert turns.changes_of("i") == ()


def test_a_tool_call_is_found_by_what_it_is_while_it_waits() -> None:
    turns = TurnTracker("t")
    items = [
        McpToolCallThreadItem(id=id_, arguments={"n": n}, server="s", status="inProgress", tool="x")
        for n, id_ in enumerate(("i", "j"))
    ]
    for item in items:
        turns.take(ItemStartedNotification(thread_id="t", turn_id="u", started_at_ms=1, item=item))

    asked = [("s", {"n": 0}), ("s", {"n": 1}), ("s", {"n": 2}), ("other", {"n": 0})]
    assert [turns.tool_call_of(*each) for each in asked] == ["i", "j", "", ""]
    done = ItemCompletedNotification(thread_id="t", turn_id="u", completed_at_ms=1, item=items[0])
    turns.take(done)
    assert [turns.tool_call_of(*each) for each in asked] == ["", "j", "", ""]


def test_an_answer_is_made_of_completed_items_alone() -> None:
    gathered = TurnCollector()
    first = [
        gathered.take(event)
        for event in (said("one"), AgentMessageDeltaNotification("t", "u", "i", "x"), said("two"))
    ]

    assert first == [None] * 3
    assert gathered.take(ended("u")) == CompletedTurn(
        "completed", "two", (said("one").item, said("two").item), None, None
    )


def test_a_failed_turn_has_its_failure_in_the_answer() -> None:
    answer = TurnCollector().take(
        ended("u", "failed", TurnError("no more", codex_error_info="usageLimitExceeded"))
    )

    assert answer is not None
    assert (answer.status, answer.text) == ("failed", "")
    assert isinstance(answer.error, ModelQuotaSpent)
