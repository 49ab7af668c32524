"""Answers in the format of OpenAI's Responses."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agent.failures import AnswerGarbled, ContentRefused, ModelOverloaded
from holdfast.agent.model import (
    StopReason,
    TextDelta,
    ThinkingDelta,
    Tokens,
    ToolCall,
    ToolCallDelta,
)
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import WHOLE
from tests.agent.core.readings import last, read
from tests.parts.provider_frames import error, frames, sse

FORM = Format.RESPONSES
CREATED = sse({"type": "response.created", "response": {"id": "r"}})
COMPLETED = sse({"type": "response.completed", "response": {"id": "r", "usage": None}})


def item(**fields: Any) -> bytes:  # Any: JSON
    return sse({"type": "response.output_item.done", "output_index": 0, "item": fields})


def test_pieces_are_told_as_they_come() -> None:
    found = read(FORM, frames(FORM, WHOLE))

    assert found[0] == ThinkingDelta(WHOLE.think[:7])
    assert TextDelta(WHOLE.say[:7]) in found
    assert ToolCallDelta(0, "read", "") in found
    assert ToolCallDelta(1, "run", "") in found


@pytest.mark.parametrize(
    ("events", "text", "calls"),
    [
        ([COMPLETED], "", ()),
        ([sse({"type": "response.output_text.delta", "delta": "a"}), COMPLETED], "a", ()),
        ([sse({"type": "response.new_thing", "delta": {"x": 1}}), COMPLETED], "", ()),
        ([sse({"type": "response.output_text.delta", "delta": None}), COMPLETED], "", ()),
        ([item(type="web_search_call", id="w"), COMPLETED], "", ()),
        ([item(type="reasoning", summary=[]), COMPLETED], "", ()),
        (
            [item(type="function_call", call_id="c", name="t", arguments=""), COMPLETED],
            "",
            (ToolCall("c", "t", "{}"),),
        ),
        (
            [item(type="function_call", call_id="c", name="t", status="incomplete"), COMPLETED],
            "",
            (ToolCall("c", "t", "{"),),
        ),
        ([b"data: [DONE]\n\n", COMPLETED], "", ()),
    ],
)
def test_what_is_unusual_is_read(
    events: list[bytes], text: str, calls: tuple[ToolCall, ...]
) -> None:
    found = last(FORM, [CREATED, *events])

    assert (found.message.text, found.message.calls, found.tokens) == (text, calls, Tokens())


def test_a_refusal_is_told_as_one() -> None:
    refusal = {"type": "refusal", "refusal": "No."}
    events = [
        sse({"type": "response.refusal.delta", "delta": "No."}),
        item(type="message", content=[refusal]),
        COMPLETED,
    ]

    found = last(FORM, events)
    assert (found.stop, found.message.text) == (StopReason.REFUSED, "No.")


def test_several_parts_of_a_thought_are_apart() -> None:
    where = {"type": "response.reasoning_summary_part.added", "item_id": "r", "output_index": 0}
    parts = [sse({**where, "summary_index": 0}), sse({**where, "summary_index": 1})]

    assert read(FORM, parts) == [ThinkingDelta("\n\n")]


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        (error(FORM, "server_error"), ModelOverloaded),
        (error(FORM, "invalid_prompt"), ContentRefused),
        (sse({"type": "error", "code": "server_error", "message": "x"}), ModelOverloaded),
        (sse({"type": "response.failed", "response": {}}), ModelOverloaded),
        (b"data: {not json\n\n", AnswerGarbled),
        (b"data: 1\n\n", AnswerGarbled),
        (sse({"type": "response.output_text.delta", "delta": 1}), AnswerGarbled),
        (sse({"type": "response.completed"}), AnswerGarbled),
    ],
)
def test_what_goes_wrong_is_named(event: bytes, failure: type[Exception]) -> None:
    with pytest.raises(failure):
        read(FORM, [CREATED, event])


@pytest.mark.parametrize("count", range(len(frames(FORM, WHOLE)) - 1))
def test_no_answer_is_whole_before_its_end(count: int) -> None:
    pieces = read(FORM, frames(FORM, WHOLE)[:count])

    assert not any(type(piece).__name__ == "Answered" for piece in pieces)


@pytest.mark.promise("A15")
@pytest.mark.parametrize("details", [None, {}, {"reason": None}, {"reason": "max_output_tokens"}])
def test_an_incomplete_answer_is_cut_whatever_reason_is_given(details: Any) -> None:
    ended = {"type": "response.incomplete", "response": {"incomplete_details": details}}
    events = [sse({"type": "response.output_text.delta", "delta": "So f"}), sse(ended)]

    assert last(FORM, events).stop is StopReason.LENGTH
