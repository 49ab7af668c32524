"""What the readers of all formats have in common: an answer that grows until it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.agent.core.sse import ServerEvent
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
    order_of,
)

Shape = TypeVar("Shape")

CUT_ARGUMENTS: Final = "{"  # the arguments of a call of which none came


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
    choice: Choice, blocks: Sequence[Thinking | str | Call], *, stop: Stop, tokens: Tokens
) -> Answered:
    """A whole answer from its blocks, in the order in which they came.

    A call that was cut by the length of the answer is kept with arguments that are not a JSON
    object: it is never made, and the model is told why. One that was cut before the name of its
    tool is dropped.
    """
    is_cut = stop is Stop.LENGTH
    last = len(blocks) - 1
    found: list[Thinking | str | Call] = []
    for at, block in enumerate(blocks):
        if isinstance(block, Call):
            if not block.tool and is_cut:
                continue
            if not block.arguments.strip():
                block = replace(block, arguments=CUT_ARGUMENTS if is_cut and at == last else "{}")
        if isinstance(block, str) and found and isinstance(found[-1], str):
            found[-1] += block
        elif block:
            found.append(block)
    calls = tuple(each for each in found if isinstance(each, Call))
    if stop not in (Stop.LENGTH, Stop.REFUSED):
        stop = Stop.CALLS if calls else Stop.DONE
    message = ModelMessage(
        text="".join(each for each in found if isinstance(each, str)),
        thinking=tuple(each for each in found if isinstance(each, Thinking)),
        calls=calls,
        provider=choice.provider,
        model=choice.model,
        order=order_of(found),
    )
    return Answered(message, stop, tokens)
