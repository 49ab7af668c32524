"""What was said in a conversation, by whom, and what that took.

There are thousands of them, never part of a cycle: the collector does not look at them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Call(msgspec.Struct, frozen=True, gc=False):
    """The model wants a tool used; the arguments are JSON as far as the model has kept to it."""

    id: str
    tool: str
    arguments: str


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What the model let see of its thinking, and what its provider wants back with it, unread."""

    text: str
    proof: str = ""


class Message(msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True, gc=False):
    """One thing that was said in a conversation."""


class Origin(StrEnum):
    """Who speaks in the person's place."""

    PERSON = "person"
    STEERING = "steering"  # the person, in the middle of a turn
    SKILL = "skill"
    NOTICE = "notice"  # the agent itself, about what happened to it


class UserMessage(Message, frozen=True, tag="user"):
    """What the model is told."""

    text: str
    origin: Origin = Origin.PERSON


class ModelMessage(Message, frozen=True, tag="model"):
    """What the model said, whole; `provider` and `model` made it."""

    text: str = ""
    thinking: tuple[Thinking, ...] = ()
    calls: tuple[Call, ...] = ()
    provider: str = ""
    model: str = ""


class ToolMessage(Message, frozen=True, tag="tool"):
    """What came of a call, as the model is told it."""

    call: str
    text: str
    is_error: bool = False


AnyMessage = UserMessage | ModelMessage | ToolMessage
"""Everything that can be said in a conversation."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What one answer of a model took; what was cached is part of the input."""

    input: int = 0
    cached: int = 0
    output: int = 0
