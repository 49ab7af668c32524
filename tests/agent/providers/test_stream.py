"""An answer that was read is whole, and what makes no sense is said to."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.failures import AnswerGarbled
from holdfast.agent.model import (
    AnswerCompleted,
    ModelChoice,
    ModelMessage,
    StopReason,
    Thinking,
    Tokens,
    ToolCall,
)
from holdfast.agent.providers.stream import answered, decoded, garbled

CHOICE = ModelChoice("there", "some-model")
GOOD, CUT = ToolCall("a", "read", "{}"), ToolCall("b", "read", '{"pa')
BARE, NAMELESS = ToolCall("c", "read", " "), ToolCall("d", "", "")
ONE, TWO = Thinking("one", "p1"), Thinking("two", "p2")


NO_CALLS: list[ToolCall] = []


@pytest.mark.parametrize(
    ("calls", "stop", "expected"),
    [
        (NO_CALLS, StopReason.DONE, (NO_CALLS, StopReason.DONE)),
        ([GOOD, CUT], StopReason.DONE, ([GOOD, CUT], StopReason.CALLS)),
        ([GOOD, CUT], StopReason.LENGTH, ([GOOD, CUT], StopReason.LENGTH)),
        ([GOOD, BARE], StopReason.DONE, ([GOOD, ToolCall("c", "read", "{}")], StopReason.CALLS)),
        ([GOOD, BARE], StopReason.LENGTH, ([GOOD, ToolCall("c", "read", "{")], StopReason.LENGTH)),
        ([GOOD, NAMELESS], StopReason.LENGTH, ([GOOD], StopReason.LENGTH)),
        (NO_CALLS, StopReason.LENGTH, (NO_CALLS, StopReason.LENGTH)),
        ([GOOD], StopReason.REFUSED, ([GOOD], StopReason.REFUSED)),
    ],
)
def test_what_was_cut_can_be_told_from_what_can_be_called(
    calls: list[ToolCall], stop: StopReason, expected: tuple[list[ToolCall], StopReason]
) -> None:
    found = answered(CHOICE, ["t", *calls], stop=stop, tokens=Tokens())

    message = ModelMessage("t", (), tuple(expected[0]), "there", "some-model")
    assert found == AnswerCompleted(message, expected[1], Tokens())


@pytest.mark.parametrize(
    ("blocks", "order"),
    [
        ([ONE, TWO, "t", GOOD, CUT], ()),
        ([ONE, "t", "u", GOOD], ()),
        ([ONE, "t", TWO, GOOD], ("thinking", 1, "thinking", "call")),
        (["t", GOOD, "uv", CUT], (1, "call", 2, "call")),
        ([GOOD, ONE, "", CUT], ("call", "thinking", "call")),
    ],
)
def test_blocks_keep_their_order(
    blocks: list[Thinking | str | ToolCall], order: tuple[int | str, ...]
) -> None:
    message = answered(CHOICE, blocks, stop=StopReason.DONE, tokens=Tokens()).message

    assert message.order == order
    joined = [ONE, "tu", GOOD] if "u" in blocks else [each for each in blocks if each != ""]
    assert list(message.blocks()) == joined
    kept = msgspec.json.decode(msgspec.json.encode(message), type=ModelMessage)
    assert list(kept.blocks()) == joined


class _Thing(msgspec.Struct):
    name: str


@pytest.mark.parametrize("data", [b"", b"{", b'{"name": 1}', b"[]", b'"\xff"', b"[" * 100_000])
def test_what_makes_no_sense_is_named(data: bytes) -> None:
    with pytest.raises(AnswerGarbled) as raised:
        decoded(data, _Thing, CHOICE)

    assert raised.value == garbled(CHOICE, "an event is no thing")
