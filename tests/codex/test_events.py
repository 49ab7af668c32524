"""News is read leniently: what is new or misshapen stays observable, and hurts nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.codex.events import KNOWN, is_end, read_event, thread_of, turn_of
from holdfast.codex.model import UnknownEvent
from holdfast.codex.wire.generated import (
    AgentMessageDeltaNotification,
    Turn,
    TurnCompletedNotification,
    TurnStartedNotification,
    WarningNotification,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.rpc.model import Notification

DELTA = "item/agentMessage/delta"


@pytest.mark.parametrize(
    ("method", "params", "event", "thread"),
    [
        (
            DELTA,
            b'{"threadId":"t","turnId":"u","itemId":"i","delta":"x","new":1}',
            AgentMessageDeltaNotification("t", "u", "i", "x"),
            "t",
        ),
        ("warning", b'{"message":"m","threadId":null}', WarningNotification("m"), None),
        ("warning", b'{"message":"m","threadId":5}', WarningNotification("m"), None),
        (DELTA, b'{"threadId":"t"}', AgentMessageDeltaNotification("t"), "t"),
        (DELTA, b"[1]", UnknownEvent(DELTA, [1]), None),
        (DELTA, b"", AgentMessageDeltaNotification(), None),
        ("turn/started", b'{"threadId":"t"}', UnknownEvent("turn/started", {"threadId": "t"}), "t"),
        (DELTA, b'"\xff"', UnknownEvent(DELTA), None),
        ("new", b'{"threadId":"t","a":1}', UnknownEvent("new", {"threadId": "t", "a": 1}), "t"),
        ("brand/new", b'{"threadId":7}', UnknownEvent("brand/new", {"threadId": 7}), None),
    ],
)  # fmt: skip
@pytest.mark.promise("F11", "F12")
def test_every_piece_of_news_is_read_or_kept_as_it_came(
    method: str, params: bytes, event: WireMessage, thread: str | None
) -> None:
    read = read_event(Notification(method, Raw(params)))

    assert read == event
    assert thread_of(read) == thread


@pytest.mark.parametrize(
    ("event", "turn", "ends"),
    [
        (AgentMessageDeltaNotification("t", "u", "i", "x"), "u", False),
        (TurnStartedNotification(Turn("u", (), "inProgress"), "t"), "u", False),
        (TurnCompletedNotification(Turn("u", (), "failed"), "t"), "u", True),
        (WarningNotification("m"), None, False),
        (UnknownEvent("turn/completed", {"turn": {"id": "u"}}), "u", True),
        (UnknownEvent("turn/completed", {"turn": {"id": 1}}), None, True),
        (UnknownEvent("new", {"turnId": "u"}), "u", False),
        (UnknownEvent("new", [1]), None, False),
    ],
)
def test_which_turn_it_is_about_and_whether_that_ends(
    event: WireMessage, turn: str | None, *, ends: bool
) -> None:
    assert (turn_of(event), is_end(event)) == (turn, ends)


@given(st.sampled_from([DELTA, "error", "turn/completed", "item/started", "x"]), st.binary())
def test_no_params_at_all_raise(method: str, params: bytes) -> None:
    read_event(Notification(method, Raw(params)))


def test_what_is_known_is_known() -> None:
    assert (DELTA in KNOWN, "brand/new" in KNOWN) == (True, False)
