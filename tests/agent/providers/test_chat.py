"""The format of chat completions, to and fro, as various servers speak it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agent.failures import AnswerGarbled, KeyRefused, ModelOverloaded
from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    StopReason,
    Thinking,
    Tokens,
    ToolCall,
)
from holdfast.agent.providers.chat import ChatEncoder, ChatWriter
from holdfast.agent.providers.registry import Format
from holdfast.agent.testing import WHOLE
from tests.agent.core.readings import last, read
from tests.parts.provider_frames import data, error, frames

FORM = Format.CHAT
DONE = b"data: [DONE]\n\n"


def chunk(finish: str | None = None, **delta: Any) -> bytes:  # Any: JSON
    return data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def call(index: int | None, name: str, arguments: str, id: str | None = None) -> bytes:
    found = {"index": index, "id": id, "function": {"name": name or None, "arguments": arguments}}
    return chunk(tool_calls=[found])


def test_thoughts_go_back_to_who_let_us_see_them() -> None:
    message = last(FORM, frames(FORM, WHOLE)).message
    assert message.thinking == (Thinking(WHOLE.think, "reasoning_content"),)

    own = json.loads(ChatEncoder("there").spoken(message))
    foreign = json.loads(ChatEncoder("elsewhere").spoken(message))
    assert own.pop("reasoning_content") == WHOLE.think
    assert own == foreign


def test_a_message_of_calls_alone_has_no_content() -> None:
    message = ModelMessage(" ", calls=(ToolCall("c", "t", "{}"),))

    assert json.loads(ChatEncoder("there").spoken(message))["content"] is None


def test_what_is_asked_for() -> None:
    choice = ModelChoice("there", "some-model", "high")
    body = json.loads(ChatWriter("there").body(choice, ModelRequest("S", (), output_max=7)))

    assert body == {
        "model": "some-model",
        "stream": True,
        "stream_options": {"include_usage": True},
        "reasoning_effort": "high",
        "max_tokens": 7,
        "messages": [{"role": "system", "content": "S"}],
    }


SECOND = data({"choices": [{"index": 1, "delta": {"content": "b"}}]})
TWO = (ToolCall("a", "read", '{"x":1}'), ToolCall("b", "run", "{}"))


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([call(0, "read", '{"x":1}', "a"), call(1, "run", "{}", "b")], TWO),
        ([call(0, "read", '{"x":1}', "a"), call(0, "run", "{}", "b")], TWO),
        ([call(None, "read", '{"x":1}', "a"), call(None, "run", "{}", "b")], TWO),
        ([call(0, "read", "", "a"), call(0, "", '{"x"'), call(0, "", ":1}")], TWO[:1]),
        ([call(None, "read", "", "a"), call(None, "", '{"x":1}')], TWO[:1]),
        ([call(3, "read", '{"x":1}', "a"), call(7, "run", "", "b")], TWO),
        ([call(0, "run", "{}"), call(1, "run", "{}", "")],
         (ToolCall("call_fresh_0", "run", "{}"), ToolCall("call_fresh_1", "run", "{}"))),
        ([call(0, "run", "{}", "a"), call(1, "run", "{}", "a")],
         (ToolCall("a", "run", "{}"), ToolCall("call_fresh_1", "run", "{}"))),
    ],
)  # fmt: skip
def test_calls_are_told_apart(events: list[bytes], calls: tuple[ToolCall, ...]) -> None:
    found = last(FORM, [*events, chunk("tool_calls"), DONE])

    assert (found.message.calls, found.stop) == (calls, StopReason.CALLS)


@pytest.mark.parametrize(
    ("events", "text", "stop"),
    [
        ([chunk(content="a"), chunk("stop"), DONE], "a", StopReason.DONE),
        ([chunk("stop", content="a")], "a", StopReason.DONE),
        ([chunk(content="a"), chunk("length"), DONE], "a", StopReason.LENGTH),
        ([chunk(content="a"), chunk("content_filter"), DONE], "a", StopReason.REFUSED),
        ([chunk(refusal="No."), chunk("stop"), DONE], "No.", StopReason.REFUSED),
        ([chunk("model_length", content="a"), DONE], "a", StopReason.LENGTH),  # Mistral: the window
        ([chunk("max_tokens", content="a"), DONE], "a", StopReason.LENGTH),
        ([chunk(content="a"), chunk("eos_token"), DONE], "a", StopReason.DONE),
        ([SECOND, chunk("stop")], "", StopReason.DONE),
        ([data({"object": "ping"}), chunk("stop"), DONE], "", StopReason.DONE),
        ([data({"choices": None}), chunk("stop", content=None), DONE], "", StopReason.DONE),
    ],
)  # fmt: skip
def test_what_is_unusual_is_read(events: list[bytes], text: str, stop: StopReason) -> None:
    found = last(FORM, events)

    assert (found.message.text, found.stop) == (text, stop)


def test_what_it_took_is_read() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    assert last(
        FORM, [chunk("stop"), data({"choices": [], "usage": usage}), DONE]
    ).tokens == Tokens(input=9, output=4)


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        (error(FORM, "server_error"), ModelOverloaded),
        (data({"error": {"code": 401, "message": "x"}}), KeyRefused),
        (data({"error": "a text"}), ModelOverloaded),
        (b"data: {not json\n\n", AnswerGarbled),
        (data({"choices": 1}), AnswerGarbled),
        (DONE, AnswerGarbled),
    ],
)
def test_what_goes_wrong_is_named(event: bytes, failure: type[Exception]) -> None:
    with pytest.raises(failure):
        read(FORM, [chunk(content="a"), event])


def test_who_does_not_finish_has_not_answered() -> None:
    assert len(read(FORM, [chunk(content="a")])) == 1


@pytest.mark.promise("A15")
@pytest.mark.parametrize("reason", ["insufficient_system_resource", "error", "abort"])
@pytest.mark.parametrize("mark", [(DONE,), ()])
def test_an_answer_that_its_server_broke_off_is_none(reason: str, mark: tuple[bytes, ...]) -> None:
    """DeepSeek, OpenRouter and vLLM give these as reasons of the end."""
    with pytest.raises(ModelOverloaded) as caught:
        read(FORM, [chunk(reason, content="So f"), *mark])

    assert caught.value.details["word"] == reason
