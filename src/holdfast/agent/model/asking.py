"""What a model is sent, and the pieces in which its answer comes."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.agent.model.talk import AnyMessage, ModelMessage, Tokens


class Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model of a provider, and how hard it is to think."""

    provider: str
    model: str
    effort: str = ""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it; the parameters are a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, object]


class Said(msgspec.Struct, frozen=True, gc=False):
    """A message with the name of its entry, under which its wire bytes may be kept."""

    id: str
    message: AnyMessage


class Prompt(msgspec.Struct, frozen=True):
    """All that a model is sent for one answer."""

    system: str
    said: tuple[Said, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_max: int | None = None  # tokens


class Stop(StrEnum):
    """Why a model stopped."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


class Piece(msgspec.Struct, frozen=True):
    """A part of an answer that is still being made."""


class TextPiece(Piece, frozen=True):
    """More of the text."""

    text: str


class ThinkingPiece(Piece, frozen=True):
    """More of the thinking."""

    text: str


class CallPiece(Piece, frozen=True):
    """More of the arguments of a call; the first piece of each names it."""

    index: int
    tool: str
    text: str


class Waiting(Piece, frozen=True):
    """The provider wants us to wait, or we do so of ourselves, before trying again."""

    seconds: float
    failure: dict[str, object]
    attempt: int


class Discarded(Piece, frozen=True):
    """What came of this answer so far is void: it is begun anew from the same head."""

    failure: dict[str, object]


class Answered(Piece, frozen=True):
    """The answer is whole; always the last piece."""

    message: ModelMessage
    stop: Stop
    tokens: Tokens


AnyPiece = TextPiece | ThinkingPiece | CallPiece | Waiting | Discarded | Answered
"""Everything that comes while a model answers."""
