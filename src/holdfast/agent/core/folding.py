"""What the readers of all formats have in common: an answer that grows until it is whole."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from holdfast.agent.core.sse import ServerEvent
from holdfast.agent.core.wire_text import is_object
from holdfast.agent.failures import AnswerGarbled
from holdfast.agent.model import (
    Answered,
    AnyPiece,
    Call,
    Choice,
    ModelMessage,
    Stop,
    Thinking,
    Tokens,
)

Shape = TypeVar("Shape")


class Reading(Protocol):
    """Makes pieces of the events of one answer; raises what is wrong with them."""

    def take(self, event: ServerEvent) -> list[AnyPiece]:
        """The pieces that an event stands for; `Answered` is the last one ever."""
        ...

    def end(self) -> list[AnyPiece]:
        """What is left to say when the stream is over; nothing, if the answer is not whole."""
        ...


def decoded(data: bytes, shape: type[Shape], choice: Choice) -> Shape:
    """Read the data of an event that is known to have this shape."""
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise garbled(choice, f"an event is no {shape.__name__.strip('_').lower()}") from error


def garbled(choice: Choice, problem: str) -> AnswerGarbled:
    """The failure that an answer makes no sense, and why."""
    return AnswerGarbled(provider=choice.provider, model=choice.model, problem=problem)


def answered(
    choice: Choice,
    *,
    text: str,
    thinking: list[Thinking],
    calls: list[Call],
    stop: Stop,
    tokens: Tokens,
) -> Answered:
    """A whole answer; of what was cut by its length, only calls that can be made are kept."""
    if stop is Stop.LENGTH:
        calls = [call for call in calls if is_object(call.arguments)]
    elif stop is not Stop.REFUSED:
        stop = Stop.CALLS if calls else Stop.DONE
    message = ModelMessage(
        text=text,
        thinking=tuple(thinking),
        calls=tuple(calls),
        provider=choice.provider,
        model=choice.model,
    )
    return Answered(message, stop, tokens)
