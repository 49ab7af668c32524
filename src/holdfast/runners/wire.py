"""How the host and a rehearsed agent speak: JSON-RPC over the agent's input and output."""

from __future__ import annotations

import msgspec

EVENTS = "events"  # to the host: a list of what happened
TURN = "turn"
ANSWER = "answer"
INTERRUPT = "interrupt"


class TurnParams(msgspec.Struct, frozen=True):
    """Play the turn of this number; what happens is told, its end included."""

    number: int


class AnswerParams(msgspec.Struct, frozen=True):
    """What a person answered to a question."""

    question: str
    answer: str


class NoParams(msgspec.Struct, frozen=True):
    """Nothing more need be said."""


class Taken(msgspec.Struct, frozen=True):
    """Whether it was of any use."""

    taken: bool
