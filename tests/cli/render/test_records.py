"""What a program reads of a turn."""

from __future__ import annotations

from holdfast.cli.model import Json
from holdfast.cli.render.records import (
    Result,
    approval_record,
    event_record,
    result_record,
    thread_record,
)

USAGE: Json = {"total": {"totalTokens": 7}}
EVENTS: list[tuple[str, Json]] = [
    ("item/agentMessage/delta", {"itemId": "a", "delta": "Hel"}),
    ("item/agentMessage/delta", {"itemId": "a", "delta": "lo"}),
    ("item/completed", {"item": {"type": "agentMessage", "id": "a", "text": "Hello"}}),
    ("item/agentMessage/delta", {"itemId": "b", "delta": "Half"}),
    ("thread/tokenUsage/updated", {"tokenUsage": USAGE}),
    ("turn/completed", {"turn": {"status": "interrupted"}}),
]


def test_records_say_what_they_are() -> None:
    approval: dict[str, object] = {"kind": "command"}

    assert thread_record("t") == {"schema": 1, "type": "thread", "thread": "t"}
    assert event_record("m", [1]) == {"schema": 1, "type": "event", "method": "m", "params": [1]}
    assert approval_record(approval, decision="accept", why="person") == {
        "schema": 1,
        "type": "approval",
        "approval": approval,
        "decision": "accept",
        "why": "person",
    }


def test_a_result_is_what_the_events_said_so_far() -> None:
    result = Result()
    seen = []
    for method, params in EVENTS:
        result.take(method, params)
        seen.append((result.text, result.usage, result.status))

    assert seen == [
        ("Hel", None, "failed"),
        ("Hello", None, "failed"),
        ("Hello", None, "failed"),
        ("Half", None, "failed"),
        ("Half", USAGE, "failed"),
        ("Half", USAGE, "interrupted"),
    ]


def test_a_result_that_knows_nothing_is_still_one() -> None:
    assert result_record(Result(), error={"code": "A_B"}) == {
        "schema": 1,
        "type": "result",
        "status": "failed",
        "text": "",
        "thread": None,
        "usage": None,
        "error": {"code": "A_B"},
    }


def test_odd_events_change_nothing() -> None:
    result = Result()
    for method, _ in EVENTS:
        for params in (None, [], {}, {"item": 7, "turn": "x", "delta": 7, "itemId": []}):
            result.take(method, params)

    assert (result.text, result.usage, result.status) == ("", None, "failed")
