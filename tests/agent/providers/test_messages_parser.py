"""Answers in the format of Anthropic's Messages."""

from __future__ import annotations

import pytest

from holdfast.agent.arguments import arguments_of
from holdfast.agent.failures import AnswerGarbled, ModelOverloaded, RateLimited
from holdfast.agent.model import (
    StopReason,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Tokens,
    ToolCall,
    ToolCallDelta,
)
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import WHOLE
from tests.agent.core.readings import last, read
from tests.parts.provider_frames import SIGNATURE, error, frames, sse

FORM = Format.MESSAGES
START = sse({"type": "message_start", "message": {"usage": {"input_tokens": 5}}})
STOP = sse({"type": "message_stop"})


def ended(reason: str | None, **usage: int) -> bytes:
    return sse({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})


def block(at: int, **content: object) -> bytes:
    return sse({"type": "content_block_start", "index": at, "content_block": content})


def delta(at: int, **change: object) -> bytes:
    return sse({"type": "content_block_delta", "index": at, "delta": change})


def test_thoughts_come_signed() -> None:
    assert last(FORM, frames(FORM, WHOLE)).message.thinking == (Thinking(WHOLE.think, SIGNATURE),)


def test_pieces_are_told_as_they_come() -> None:
    found = read(FORM, frames(FORM, WHOLE))

    assert found[0] == ThinkingDelta(WHOLE.think[:7])
    assert TextDelta(WHOLE.say[:7]) in found
    assert ToolCallDelta(0, "read", "") in found
    assert ToolCallDelta(1, "run", "") in found


def test_what_it_took_is_what_was_told_last() -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100}
    start = sse({"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}})
    events = [start, ended("end_turn", output_tokens=9), ended(None, output_tokens=12), STOP]

    assert last(FORM, events).tokens == Tokens(input=125, cached=100, output=12, written=20)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", StopReason.DONE),
        ("stop_sequence", StopReason.DONE),
        ("pause_turn", StopReason.DONE),
        ("something_new", StopReason.DONE),
        ("max_tokens", StopReason.LENGTH),
        ("model_context_window_exceeded", StopReason.LENGTH),
        ("refusal", StopReason.REFUSED),
    ],
)
def test_why_it_stopped(reason: str, stop: StopReason) -> None:
    assert last(FORM, [START, ended(reason), STOP]).stop is stop


def test_blocks_of_all_kinds_are_read() -> None:
    events = [
        START,
        block(0, type="redacted_thinking", data="ZGF0YQ"),
        block(1, type="server_tool_use", id="", name="web", input={}),
        delta(1, type="input_json_delta", partial_json="{}"),
        block(2, type="text", text="Look."),
        block(3, type="tool_use", id="c1", name="now", input={}),
        delta(2, type="citations_delta", citation={}),
        ended("tool_use"),
        STOP,
    ]

    message = last(FORM, events).message
    assert message.thinking == (Thinking("", "redacted:ZGF0YQ"),)
    assert (message.text, message.calls) == ("Look.", (ToolCall("c1", "now", "{}"),))


def test_a_call_that_was_cut_is_not_made() -> None:
    events = [
        START,
        block(0, type="tool_use", id="c1", name="read", input={}),
        delta(0, type="input_json_delta", partial_json='{"path": "a'),
        ended("max_tokens"),
        STOP,
    ]

    found = last(FORM, events)
    assert found.stop is StopReason.LENGTH
    assert isinstance(arguments_of(found.message.calls[0].arguments), str)


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        (error(FORM, "overloaded_error"), ModelOverloaded),
        (error(FORM, "rate_limit_error"), RateLimited),
        (error(FORM, "something_new"), ModelOverloaded),
        (b"data: {not json\n\n", AnswerGarbled),
        (delta(4, type="text_delta", text="a"), AnswerGarbled),
        (sse({"type": "content_block_start", "index": 0}), AnswerGarbled),
        (STOP, AnswerGarbled),
    ],
)
def test_what_goes_wrong_is_named(event: bytes, failure: type[Exception]) -> None:
    with pytest.raises(failure):
        read(FORM, [START, event])


def test_what_is_unknown_is_left_out() -> None:
    assert read(FORM, [START, sse({"type": "ping"}), sse({"type": "new", "index": "x"})]) == []


@pytest.mark.parametrize("count", range(len(frames(FORM, WHOLE)) - 1))
def test_no_answer_is_whole_before_its_end(count: int) -> None:
    pieces = read(FORM, frames(FORM, WHOLE)[:count])

    assert not any(type(piece).__name__ == "Answered" for piece in pieces)
