"""What was said in a conversation, by whom, and what that took.

There are thousands of them, never part of a cycle: the collector does not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec


class Call(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The model wants a tool used; the arguments are JSON as far as the model has kept to it.

    `opaque` is JSON that the provider wants back with the call, unread.
    """

    id: str
    tool: str
    arguments: str
    opaque: str = ""


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


THINKING: Final = "thinking"
CALL: Final = "call"

Order = tuple[int | str, ...]
"""Kinds of blocks in the order in which they came: `THINKING`, `CALL`, or so many characters of
text. Empty in the usual order, which is also that of journals without it: thinking, text, calls.
"""


class ModelMessage(Message, frozen=True, tag="model"):
    """What the model said, whole; `provider` and `model` made it."""

    text: str = ""
    thinking: tuple[Thinking, ...] = ()
    calls: tuple[Call, ...] = ()
    provider: str = ""
    model: str = ""
    order: Order = ()

    def blocks(self) -> Iterator[Thinking | str | Call]:
        """Thinking, text and calls in the order in which they came."""
        thinking, calls, at = iter(self.thinking), iter(self.calls), 0
        for part in self.order:
            if isinstance(part, int):
                yield self.text[at : at + part]
                at += part
            elif (block := next(thinking if part == THINKING else calls, None)) is not None:
                yield block
        # A call may have been dropped or mended since: nothing of what is left is lost.
        yield from thinking
        if at < len(self.text):
            yield self.text[at:]
        yield from calls

    def sendable(self) -> Iterator[Thinking | str | Call]:
        """The blocks without thinking at the end, as an answer that was cut may have.

        Providers refuse thinking that nothing follows.
        """
        blocks = list(self.blocks())
        while blocks and _is_trailing(blocks[-1]):
            blocks.pop()
        return iter(blocks)


def _is_trailing(block: Thinking | str | Call) -> bool:
    return isinstance(block, Thinking) or (isinstance(block, str) and not block.strip())


class ToolMessage(Message, frozen=True, tag="tool"):
    """What came of a call, as the model is told it."""

    call: str
    text: str
    is_error: bool = False


AnyMessage = UserMessage | ModelMessage | ToolMessage
"""Everything that can be said in a conversation."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What one answer of a model took.

    `cached` (read from a cache) and `written` (written to one) are part of the input.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    written: int = 0


def order_of(blocks: Iterable[Thinking | str | Call]) -> Order:
    """The order of blocks as a message keeps it: empty if it is the usual one."""
    parts = tuple(_part(block) for block in blocks)
    ranks = [{THINKING: 0, CALL: 2}.get(str(part), 1) for part in parts]
    is_usual = ranks == sorted(ranks) and ranks.count(1) <= 1
    return () if is_usual else parts


def _part(block: Thinking | str | Call) -> int | str:
    if isinstance(block, str):
        return len(block)
    return THINKING if isinstance(block, Thinking) else CALL
