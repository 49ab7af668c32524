"""An answer that was read is whole, and what makes no sense is said to."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.agent.core.folding import answered, decoded, garbled
from holdfast.agent.failures import AnswerGarbled
from holdfast.agent.model import Answered, Call, Choice, ModelMessage, Stop, Tokens

CHOICE = Choice("there", "some-model")
GOOD, CUT = Call("a", "read", "{}"), Call("b", "read", '{"pa')


@pytest.mark.parametrize(
    ("calls", "stop", "expected"),
    [
        ([], Stop.DONE, ([], Stop.DONE)),
        ([GOOD, CUT], Stop.DONE, ([GOOD, CUT], Stop.CALLS)),
        ([GOOD, CUT], Stop.LENGTH, ([GOOD], Stop.LENGTH)),
        ([], Stop.LENGTH, ([], Stop.LENGTH)),
        ([GOOD], Stop.REFUSED, ([GOOD], Stop.REFUSED)),
    ],
)
def test_what_was_cut_is_not_called(
    calls: list[Call], stop: Stop, expected: tuple[list[Call], Stop]
) -> None:
    found = answered(CHOICE, text="t", thinking=[], calls=calls, stop=stop, tokens=Tokens())

    message = ModelMessage("t", (), tuple(expected[0]), "there", "some-model")
    assert found == Answered(message, expected[1], Tokens())


class _Thing(msgspec.Struct):
    name: str


@pytest.mark.parametrize("data", [b"", b"{", b'{"name": 1}', b"[]", b'"\xff"', b"[" * 100_000])
def test_what_makes_no_sense_is_named(data: bytes) -> None:
    with pytest.raises(AnswerGarbled) as raised:
        decoded(data, _Thing, CHOICE)

    assert raised.value == garbled(CHOICE, "an event is no thing")
