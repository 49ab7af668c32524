"""Reading what fits at once, what is new with patience, and refusing only what says nothing."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codex.wire.generated import (
    NOTIFICATIONS,
    AgentMessageDeltaNotification,
    AgentMessageThreadItem,
    CommandExecutionThreadItem,
    ErrorNotification,
    ForeignThreadItem,
    ForeignThreadStatus,
    ForeignUserInput,
    IdleThreadStatus,
    ItemStartedNotification,
    Thread,
    ThreadListResponse,
    ThreadStatusChangedNotification,
    Turn,
    TurnCompletedNotification,
    TurnError,
    TurnInterruptResponse,
    UserMessageThreadItem,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import read_answer, read_anything, read_params
from holdfast.rpc.failures import AnswerInvalid, ParamsInvalid

IDS = {"threadId": "t", "turnId": "u"}


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


def started(item: object) -> dict[str, object]:
    return {**IDS, "item": item, "startedAtMs": 1}


@pytest.mark.promise("F12")
@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (
            {**IDS, "itemId": "i", "delta": "d", "novelty": [1]},
            AgentMessageDeltaNotification(thread_id="t", turn_id="u", item_id="i", delta="d"),
        ),
        (
            started({"type": "hologram", "id": "i", "depth": 3}),
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=1,
                item=ForeignThreadItem(
                    kind="hologram", id="i", fields={"type": "hologram", "id": "i", "depth": 3}
                ),
            ),
        ),
        (
            {**IDS, "item": 5},
            ItemStartedNotification(thread_id="t", turn_id="u", item=ForeignThreadItem()),
        ),
        (
            started({"type": "commandExecution", "command": "ls"}),
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=1,
                item=CommandExecutionThreadItem(command="ls"),
            ),
        ),
        (
            {"data": [{"id": "t1"}, {"name": "lacks its id"}, {"id": "t2"}]},
            ThreadListResponse(data=(Thread(id="t1"), Thread(id="t2"))),
        ),
        (
            started({"text": "no kind at all"}),
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=1,
                item=ForeignThreadItem(fields={"text": "no kind at all"}),
            ),
        ),
        (
            started({"type": "agentMessage", "id": "i", "text": "hi", "phase": 7}),
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=1,
                item=AgentMessageThreadItem(id="i", text="hi"),
            ),
        ),
        (
            started({"type": "userMessage", "id": "i", "content": [{"type": "smell"}]}),
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=1,
                item=UserMessageThreadItem(
                    id="i", content=(ForeignUserInput(kind="smell", fields={"type": "smell"}),)
                ),
            ),
        ),
        (
            {**IDS, "item": {"type": "commandExecution", "id": "i", "command": None}},
            ItemStartedNotification(
                thread_id="t",
                turn_id="u",
                started_at_ms=0,
                item=CommandExecutionThreadItem(id="i", command="", cwd="", status=""),
            ),
        ),
        (
            {"threadId": "t", "turn": {"id": "u"}},
            TurnCompletedNotification(thread_id="t", turn=Turn(id="u", items=(), status="")),
        ),
        (
            {"threadId": "t", "status": {"type": "dreaming"}},
            ThreadStatusChangedNotification(
                thread_id="t",
                status=ForeignThreadStatus(kind="dreaming", fields={"type": "dreaming"}),
            ),
        ),
        (
            {"threadId": "t", "status": {"type": "idle", "since": 5}},
            ThreadStatusChangedNotification(thread_id="t", status=IdleThreadStatus()),
        ),
        (
            {"threadId": "t", "turn": {"id": "u", "items": [], "status": "paused", "error": 5}},
            TurnCompletedNotification(
                thread_id="t", turn=Turn(id="u", items=(), status="paused", error=None)
            ),
        ),
        (
            {**IDS, "willRetry": False, "error": {"message": "m", "codexErrorInfo": {"new": {}}}},
            ErrorNotification(
                thread_id="t",
                turn_id="u",
                will_retry=False,
                error=TurnError(message="m", codex_error_info={"new": {}}),
            ),
        ),
    ],
)
def test_what_is_new_or_odd_is_read_as_far_as_it_goes(sent: object, read: WireMessage) -> None:
    assert read_params("m", type(read), raw(sent)) == read


@pytest.mark.promise("F12")
@pytest.mark.parametrize(
    ("sent", "wanted", "reason"),
    [
        (b'{"threadId":"t"}', TurnCompletedNotification, "lacks `turn`"),
        (b'{"turn":{"id":5}}', TurnCompletedNotification, "got `int`"),
        (b"[]", AgentMessageDeltaNotification, "is no list"),
        (b"", TurnCompletedNotification, "lacks `turn`"),
        (b"{", AgentMessageDeltaNotification, "truncated"),
        (b'{"threadId":"\xff"}', AgentMessageDeltaNotification, "utf"),
        (b'{"turn":{"status":"completed"}}', TurnCompletedNotification, "Turn lacks `id`"),
    ],
)
def test_what_lacks_the_indispensable_is_refused_by_name(
    sent: bytes, wanted: type[WireMessage], reason: str
) -> None:
    with pytest.raises(ParamsInvalid) as raised:
        read_params("some/method", wanted, msgspec.Raw(sent))

    assert raised.value.method == "some/method"
    assert reason in raised.value.reason


@pytest.mark.parametrize("sent", [b"{}", b"null", b'{"more":1}'])
def test_an_answer_without_members_is_read(sent: bytes) -> None:
    answer = read_answer("turn/interrupt", TurnInterruptResponse, msgspec.Raw(sent))

    assert answer == TurnInterruptResponse()


def test_an_answer_that_does_not_fit_is_named_as_one() -> None:
    with pytest.raises(AnswerInvalid) as raised:
        read_answer("turn/interrupt", TurnInterruptResponse, msgspec.Raw(b"5"))

    assert raised.value == AnswerInvalid(
        method="turn/interrupt", reason="TurnInterruptResponse is no int"
    )


def test_an_answer_that_nobody_can_read_is_named_as_one() -> None:
    assert read_anything("model/list", msgspec.Raw(b'{"data":[]}')) == {"data": []}
    for sent in (b'"\xff"', b"[" * 100_000 + b"]" * 100_000):
        with pytest.raises(AnswerInvalid) as caught:
            read_anything("model/list", msgspec.Raw(sent))
        assert caught.value.method == "model/list"


def test_what_is_foreign_can_still_be_told_apart_from_what_is_known() -> None:
    item = {"type": "commandExecution", "id": "i", "command": "c", "cwd": "/", "status": "s"}
    sent = raw(started({**item, "commandActions": [{"type": "teleport", "to": "x"}]}))

    read = read_params("item/started", ItemStartedNotification, sent)

    assert isinstance(read.item, CommandExecutionThreadItem)
    assert [type(action).__name__ for action in read.item.command_actions] == [
        "ForeignCommandAction"
    ]


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "id", "item", "threadId", "turnId", "turn", "status", "x"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(sent=any_json, method=st.sampled_from(sorted(NOTIFICATIONS)))
def test_whatever_comes_is_read_or_refused_by_name(sent: object, method: str) -> None:
    wanted = NOTIFICATIONS[method]
    try:
        read = read_params(method, wanted, raw(sent))
    except ParamsInvalid as refused:
        assert refused.method == method
    else:
        assert isinstance(read, wanted)
