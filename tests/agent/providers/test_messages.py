"""Prompts in the format of Anthropic's Messages."""

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
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.providers.messages import OUTPUT_MAX, MessagesEncoder, MessagesWriter
from holdfast.agent.providers.stream import answered

CACHED = {"type": "ephemeral"}
CHOICE = ModelChoice("there", "claude-opus-5")
THOUGHT = Thinking("hm", "c2ln")
CALL = ToolCall("c1", "read", "{}")
CALLED = ModelMessage("Look.", (THOUGHT,), (CALL,), "there", "claude-opus-5")


def body(*messages: Any, choice: ModelChoice = CHOICE, **options: Any) -> Any:  # Any: JSON
    said = tuple(PromptMessage(f"m{at}", each) for at, each in enumerate(messages))
    return json.loads(MessagesWriter("there").body(choice, ModelRequest("S", said, **options)))


def test_thoughts_go_back_signed() -> None:
    blocks = json.loads(MessagesEncoder("there").spoken(CALLED))["content"]

    assert blocks == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
    ]
    assert json.loads(MessagesEncoder("elsewhere").spoken(CALLED))["content"] == blocks[1:]


def test_thoughts_that_nobody_may_see_go_back_too() -> None:
    message = ModelMessage("a", (Thinking("", "redacted:ZGF0YQ"),), (), "there")

    assert json.loads(MessagesEncoder("there").spoken(message))["content"][0] == {
        "type": "redacted_thinking",
        "data": "ZGF0YQ",
    }


def test_results_come_first_and_failures_are_marked() -> None:
    told = body(UserMessage("Go."), CALLED, UserMessage("Hurry."), ToolMessage("c1", "", True))

    assert [each["role"] for each in told["messages"]] == ["user", "assistant", "user"]
    assert told["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "(nothing)", "is_error": True},
        {"type": "text", "text": "Hurry.", "cache_control": CACHED},
    ]


def test_the_end_of_the_last_two_messages_is_cached() -> None:
    said = [UserMessage("a"), ModelMessage("b"), UserMessage("c"), ModelMessage("d")]
    told = body(*said, UserMessage("e"))

    blocks = [block for each in told["messages"] for block in each["content"]]
    texts = [(block["text"], "cache_control" in block) for block in blocks]
    assert texts == [("a", False), ("b", False), ("c", True), ("d", False), ("e", True)]
    assert told["system"] == [{"type": "text", "text": "S", "cache_control": CACHED}]


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        ((), ["user"]),
        ((ModelMessage("a"),), ["user", "assistant", "user"]),
        ((UserMessage("a"), ModelMessage("b ")), ["user", "assistant", "user"]),
        ((UserMessage("a"), UserMessage("b")), ["user"]),
        ((UserMessage("a"), ModelMessage(""), UserMessage("b")), ["user"]),
    ],
)
def test_it_is_from_the_user_to_the_user(said: Any, roles: list[str]) -> None:
    assert [each["role"] for each in body(*said)["messages"]] == roles


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("claude-opus-5", "", {}),
        ("claude-opus-5", "none", {"thinking": {"type": "disabled"}}),
        (
            "claude-opus-5",
            "minimal",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
            },
        ),
        (
            "claude-haiku-4-5-20251001",
            "low",
            {"thinking": {"type": "enabled", "budget_tokens": 4096}},
        ),
        ("claude-sonnet-4-5", "max", {"thinking": {"type": "enabled", "budget_tokens": 30_720}}),
    ],
)
def test_how_hard_to_think(model: str, effort: str, expected: dict[str, object]) -> None:
    told = body(UserMessage("a"), choice=ModelChoice("there", model, effort))

    names = {"thinking", "output_config"}
    assert {name: told[name] for name in told.keys() & names} == expected
    assert told["max_tokens"] == OUTPUT_MAX


def test_who_goes_on_with_calls_of_another_does_not_think() -> None:
    """The provider insists on thoughts before such calls, and there are none of its own."""
    foreign = ModelMessage("", (), (CALL,), "elsewhere")
    choice = ModelChoice("there", "claude-opus-5", "high")
    told = body(UserMessage("a"), foreign, ToolMessage("c1", "r"), choice=choice)

    assert "thinking" not in told


def test_there_is_no_room_to_think() -> None:
    choice = ModelChoice("there", "claude-haiku-4-5", "high")

    assert "thinking" not in body(UserMessage("a"), choice=choice, output_max=500)


def test_tools_are_told() -> None:
    tool = ToolSpec("now", "The time.", {})

    assert body(UserMessage("a"), tools=(tool,))["tools"] == [
        {"name": "now", "description": "The time.", "input_schema": {"type": "object"}}
    ]


@pytest.mark.promise("A9")
@pytest.mark.parametrize(
    ("blocks", "types"),
    [
        (("So f", THOUGHT), ["text"]),
        ((THOUGHT, "So f", THOUGHT), ["thinking", "text"]),
        ((THOUGHT, "So f", Thinking("", "redacted:ZGF0YQ"), " "), ["thinking", "text"]),
        ((THOUGHT, CALL, THOUGHT), ["thinking", "tool_use"]),
        ((THOUGHT, "So f", THOUGHT, CALL), ["thinking", "text", "thinking", "tool_use"]),
    ],
)
def test_thinking_is_never_the_last_block(
    blocks: tuple[Thinking | str | ToolCall, ...], types: list[str]
) -> None:
    """As when an answer was cut: the provider refuses a message that ends with thinking."""
    message = answered(CHOICE, blocks, stop=StopReason.LENGTH, tokens=Tokens()).message

    written = json.loads(MessagesEncoder("there").spoken(message))["content"]
    assert [each["type"] for each in written] == types


@pytest.mark.promise("A9")
@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4.5", "claude-sonnet-4.5"])
def test_a_gateway_that_names_models_otherwise_is_asked_in_the_words_of_the_model(
    model: str,
) -> None:
    told = body(UserMessage("a"), choice=ModelChoice("there", model, "low"))

    assert told["thinking"] == {"type": "enabled", "budget_tokens": 4096}
