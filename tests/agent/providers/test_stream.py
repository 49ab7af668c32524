"""An answer that was read is whole, and what makes no sense is said to."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.failures import AnswerGarbled
from holdfast.agent.model import Answered, Call, Choice, ModelMessage, Stop, Thinking, Tokens
from holdfast.agent.providers.stream import answered, decoded, garbled

CHOICE = Choice("there", "some-model")
GOOD, CUT = Call("a", "read", "{}"), Call("b", "read", '{"pa')
BARE, NAMELESS = Call("c", "read", " "), Call("d", "", "")
ONE, TWO = Thinking("one", "p1"), Thinking("two", "p2")


NO_CALLS: list[Call] = []


@pytest.mark.parametrize(
    ("calls", "stop", "expected"),
    [
        (NO_CALLS, Stop.DONE, (NO_CALLS, Stop.DONE)),
        ([GOOD, CUT], Stop.DONE, ([GOOD, CUT], Stop.CALLS)),
        ([GOOD, CUT], Stop.LENGTH, ([GOOD, CUT], Stop.LENGTH)),
        ([GOOD, BARE], Stop.DONE, ([GOOD, Call("c", "read", "{}")], Stop.CALLS)),
        ([GOOD, BARE], Stop.LENGTH, ([GOOD, Call("c", "read", "{")], Stop.LENGTH)),
        ([GOOD, NAMELESS], Stop.LENGTH, ([GOOD], Stop.LENGTH)),
        (NO_CALLS, Stop.LENGTH, (NO_CALLS, Stop.LENGTH)),
        ([GOOD], Stop.REFUSED, ([GOOD], Stop.REFUSED)),
    ],
)
def test_what_was_cut_can_be_told_from_what_can_be_called(
    calls: list[Call], stop: Stop, expected: tuple[list[Call], Stop]
) -> None:
    found = answered(CHOICE, ["t", *calls], stop=stop, tokens=Tokens())

    message = ModelMessage("t", (), tuple(expected[0]), "there", "some-model")
    assert found == Answered(message, expected[1], Tokens())


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
    blocks: list[Thinking | str | Call], order: tuple[int | str, ...]
) -> None:
    message = answered(CHOICE, blocks, stop=Stop.DONE, tokens=Tokens()).message

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
