"""Prompts in the format of OpenAI's Responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    StopReason,
    Thinking,
    Tokens,
    ToolCall,
    UserMessage,
)
from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.responses import ResponsesEncoder, ResponsesWriter
from holdfast.agent.providers.stream import answered
from holdfast.agent.testing import WHOLE
from tests.agent.core.readings import last
from tests.parts.provider_frames import ENCRYPTED, frames, sse

FORM = Format.RESPONSES
PROOF = json.dumps({"id": "rs_1", "encrypted_content": ENCRYPTED}, separators=(",", ":"))
THOUGHT, TEXT, CALL = Thinking("Hm.", PROOF), "So f", ToolCall("c1", "look", "{}")
COMPLETED = sse({"type": "response.completed", "response": {"id": "r", "usage": None}})


def item(**fields: Any) -> bytes:  # Any: JSON
    return sse({"type": "response.output_item.done", "output_index": 0, "item": fields})


def test_thoughts_go_back_with_their_proof() -> None:
    message = last(FORM, frames(FORM, WHOLE)).message
    assert message.thinking == (Thinking(WHOLE.think, PROOF),)

    written = json.loads(b"[" + ResponsesEncoder("there").spoken(message) + b"]")
    assert written[0] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": WHOLE.think}],
        "encrypted_content": ENCRYPTED,
    }
    assert [each["type"] for each in written[1:]] == ["message", "function_call", "function_call"]


def test_another_provider_gets_everything_but_the_thoughts() -> None:
    message = last(FORM, frames(FORM, WHOLE)).message
    own = json.loads(b"[" + ResponsesEncoder("there").spoken(message) + b"]")
    foreign = json.loads(b"[" + ResponsesEncoder("elsewhere").spoken(message) + b"]")

    assert foreign == own[1:]


def test_how_a_message_was_meant_goes_back_too() -> None:
    parts = [{"type": "output_text", "text": "Soon."}]
    events = [item(type="message", content=parts, phase="commentary"), COMPLETED]
    message = last(FORM, events).message

    assert message == ModelMessage(
        "Soon.", (Thinking("", '{"phase":"commentary"}'),), (), "there", "some-model"
    )
    assert json.loads(ResponsesEncoder("there").spoken(message))["phase"] == "commentary"


def test_nothing_is_stored_there() -> None:
    said = (PromptMessage("m1", UserMessage("Hi.")),)
    body = json.loads(
        ResponsesWriter("there").body(ModelChoice("there", "gpt-5", "low"), ModelRequest("S", said))
    )

    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}


def test_who_does_not_think_is_not_asked_for_thoughts() -> None:
    body = json.loads(
        ResponsesWriter("there").body(ModelChoice("there", "gpt-4.1"), ModelRequest("S", ()))
    )

    assert not {"include", "reasoning"} & body.keys()


@pytest.mark.promise("A9")
@pytest.mark.parametrize(
    ("blocks", "types"),
    [
        ((TEXT, THOUGHT), ["message"]),
        ((THOUGHT, TEXT, THOUGHT), ["reasoning", "message"]),
        ((THOUGHT, TEXT, THOUGHT, " "), ["reasoning", "message"]),
        ((THOUGHT, CALL, THOUGHT), ["reasoning", "function_call"]),
        ((THOUGHT, TEXT, THOUGHT, CALL), ["reasoning", "message", "reasoning", "function_call"]),
    ],
)
def test_no_reasoning_goes_back_without_what_followed_it(
    blocks: tuple[Thinking | str | ToolCall, ...], types: list[str]
) -> None:
    """As when an answer was cut: the provider refuses reasoning without its following item."""
    choice = ModelChoice("there", "gpt-5")
    message = answered(choice, blocks, stop=StopReason.LENGTH, tokens=Tokens()).message

    written = json.loads(b"[" + ResponsesEncoder("there").spoken(message) + b"]")
    assert [each["type"] for each in written] == types
