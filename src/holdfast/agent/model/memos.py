"""What the agent keeps in its session's journal, which is all that it knows.

There are thousands of them, never part of a cycle: the collector does not look at them.
"""

from __future__ import annotations

import msgspec

from holdfast.agent.model.talk import AnyMessage, Tokens


class Memo(msgspec.Struct, frozen=True, tag_field="memo", omit_defaults=True, gc=False):
    """One thing that the agent keeps in its session's journal; nothing else is kept anywhere."""


class Entered(Memo, frozen=True, tag="entered"):
    """A message follows another one in the tree, or begins it, and is the head now."""

    id: str
    after: str
    message: AnyMessage


class Compacted(Memo, frozen=True, tag="compacted"):
    """On the way to `after`, the model is told this summary in place of all before `keeps`.

    Nothing is deleted. It is an entry of the tree, and the head now.
    """

    id: str
    after: str
    summary: str
    keeps: str
    tokens_before: int
    tokens_after: int


class Moved(Memo, frozen=True, tag="moved"):
    """The conversation goes on from this entry; what came after it stays, as a branch."""

    head: str


class ToolBegun(Memo, frozen=True, tag="tool_begun"):
    """From here on the call may have done something, whatever is kept afterwards."""

    call: str


class Mended(Memo, frozen=True, tag="mended"):
    """A call has no result and never will: this is what the model is told in its place."""

    call: str
    text: str


class Queued(Memo, frozen=True, tag="queued"):
    """The person has added this to the running turn; the model has not been told yet."""

    id: str
    text: str


class Dequeued(Memo, frozen=True, tag="dequeued"):
    """What was added is a message now, or is not wanted any more."""

    id: str


class Spent(Memo, frozen=True, tag="spent"):
    """An answer was paid for, also one that nobody kept."""

    provider: str
    model: str
    tokens: Tokens
    cost_usd: float | None = None


AnyMemo = Entered | Compacted | Moved | ToolBegun | Mended | Queued | Dequeued | Spent
"""Everything that the agent keeps."""
