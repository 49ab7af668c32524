"""What a conversation with a model is made of, what is kept of it and what is shown.

What the agent keeps in its session's journal, which is all that it knows.

There are thousands of them, never part of a cycle: the collector does not look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

from holdfast.nouns import RelativePath


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
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


class ConversationMessage(
    msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True, gc=False
):
    """One thing that was said in a conversation."""


class Origin(StrEnum):
    """Who speaks in the person's place."""

    PERSON = "person"
    STEERING = "steering"  # the person, in the middle of a turn
    SKILL = "skill"
    NOTICE = "notice"  # the agent itself, about what happened to it


class UserMessage(ConversationMessage, frozen=True, tag="user"):
    """What the model is told."""

    text: str
    origin: Origin = Origin.PERSON


THINKING: Final = "thinking"
CALL: Final = "call"

BlockOrder = tuple[int | str, ...]
"""Kinds of blocks in the order in which they came: `THINKING`, `CALL`, or so many characters of
text. Empty in the usual order, which is also that of journals without it: thinking, text, calls.
"""


class ModelMessage(ConversationMessage, frozen=True, tag="model"):
    """What the model said, whole; `provider` and `model` made it."""

    text: str = ""
    thinking: tuple[Thinking, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    provider: str = ""
    model: str = ""
    order: BlockOrder = ()

    def blocks(self) -> Iterator[Thinking | str | ToolCall]:
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

    def sendable(self) -> Iterator[Thinking | str | ToolCall]:
        """The blocks without thinking at the end, as an answer that was cut may have.

        Providers refuse thinking that nothing follows.
        """
        blocks = list(self.blocks())
        while blocks and _is_trailing(blocks[-1]):
            blocks.pop()
        return iter(blocks)


def _is_trailing(block: Thinking | str | ToolCall) -> bool:
    return isinstance(block, Thinking) or (isinstance(block, str) and not block.strip())


class ToolMessage(ConversationMessage, frozen=True, tag="tool"):
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


def order_of(blocks: Iterable[Thinking | str | ToolCall]) -> BlockOrder:
    """The order of blocks as a message keeps it: empty if it is the usual one."""
    parts = tuple(_part(block) for block in blocks)
    ranks = [{THINKING: 0, CALL: 2}.get(str(part), 1) for part in parts]
    is_usual = ranks == sorted(ranks) and ranks.count(1) <= 1
    return () if is_usual else parts


def _part(block: Thinking | str | ToolCall) -> int | str:
    if isinstance(block, str):
        return len(block)
    return THINKING if isinstance(block, Thinking) else CALL


# What a model is sent, and the pieces in which its answer comes.


class ModelChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model of a provider, and how hard it is to think."""

    provider: str
    model: str
    effort: str = ""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as a model is told of it; the parameters are a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, object]


class PromptMessage(msgspec.Struct, frozen=True, gc=False):
    """A message with the name of its entry, under which its wire bytes may be kept."""

    id: str
    message: AnyMessage


class ModelRequest(msgspec.Struct, frozen=True):
    """All that a model is sent for one answer."""

    system: str
    said: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_max: int | None = None  # tokens


class StopReason(StrEnum):
    """Why a model stopped."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


class AnswerDelta(msgspec.Struct, frozen=True):
    """A part of an answer that is still being made."""


class TextDelta(AnswerDelta, frozen=True):
    """More of the text."""

    text: str


class ThinkingDelta(AnswerDelta, frozen=True):
    """More of the thinking."""

    text: str


class ToolCallDelta(AnswerDelta, frozen=True):
    """More of the arguments of a call; the first piece of each names it."""

    index: int
    tool: str
    text: str


class RetryScheduled(AnswerDelta, frozen=True):
    """The provider wants us to wait, or we do so of ourselves, before trying again."""

    seconds: float
    failure: dict[str, object]
    attempt: int


class AnswerDiscarded(AnswerDelta, frozen=True):
    """What came of this answer so far is void: it is begun anew from the same head."""

    failure: dict[str, object]


class AnswerCompleted(AnswerDelta, frozen=True):
    """The answer is whole; always the last piece."""

    message: ModelMessage
    stop: StopReason
    tokens: Tokens


AnyAnswerDelta = (
    TextDelta | ThinkingDelta | ToolCallDelta | RetryScheduled | AnswerDiscarded | AnswerCompleted
)
"""Everything that comes while a model answers."""


class ConversationRecord(
    msgspec.Struct, frozen=True, tag_field="memo", omit_defaults=True, gc=False
):
    """One thing that the agent keeps in its session's journal; nothing else is kept anywhere."""


class MessageAppended(ConversationRecord, frozen=True, tag="entered"):
    """A message follows another one in the tree, or begins it, and is the head now."""

    id: str
    after: str
    message: AnyMessage


class HistoryCompacted(ConversationRecord, frozen=True, tag="compacted"):
    """On the way to `after`, the model is told this summary in place of all before `keeps`.

    Nothing is deleted. It is an entry of the tree, and the head now.
    """

    id: str
    after: str
    summary: str
    keeps: str
    tokens_before: int
    tokens_after: int


class HeadMoved(ConversationRecord, frozen=True, tag="moved"):
    """The conversation goes on from this entry; what came after it stays, as a branch."""

    head: str


class ToolCallStarted(ConversationRecord, frozen=True, tag="tool_begun"):
    """From here on the call may have done something, whatever is kept afterwards."""

    call: str


class ToolCallRepaired(ConversationRecord, frozen=True, tag="mended"):
    """A call has no result and never will: this is what the model is told in its place."""

    call: str
    text: str


class SteeringQueued(ConversationRecord, frozen=True, tag="queued"):
    """The person has added this to the running turn; the model has not been told yet."""

    id: str
    text: str


class SteeringDequeued(ConversationRecord, frozen=True, tag="dequeued"):
    """What was added is a message now, or is not wanted any more."""

    id: str


class UsageRecorded(ConversationRecord, frozen=True, tag="spent"):
    """An answer was paid for, also one that nobody kept."""

    provider: str
    model: str
    tokens: Tokens
    cost_usd: float | None = None


AnyConversationRecord = (
    MessageAppended
    | HistoryCompacted
    | HeadMoved
    | ToolCallStarted
    | ToolCallRepaired
    | SteeringQueued
    | SteeringDequeued
    | UsageRecorded
)
"""Everything that the agent keeps."""


# What tools do: with files, and for who used them.


class TaskProgress(StrEnum):
    """How far a task is."""

    OPEN = "open"
    BEGUN = "begun"
    DONE = "done"


class Task(msgspec.Struct, frozen=True):
    """One thing that the model means to do, by its number."""

    number: int
    text: str
    progress: TaskProgress = TaskProgress.OPEN


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of using a tool: what the model is told, and what the person is shown."""

    text: str
    is_error: bool = False
    shown: str | None = None  # where the person is shown something else
    status: int | None = None
    paths: tuple[str, ...] = ()  # that it changed
    plan: tuple[Task, ...] | None = None  # that it made: all that is to be done from now on
    spent: tuple[UsageRecorded, ...] = ()  # on models of its own


class FileKind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class FileInfo(msgspec.Struct, frozen=True):
    """What stands at a path, how many bytes it has, and who may do what with it."""

    sort: FileKind
    size: int
    mode: int


class FileWrite(msgspec.Struct, frozen=True):
    """A file with these bytes; `before` is what it must have now, None if it must not be there.

    A file that is there keeps its mode.
    """

    path: RelativePath
    data: bytes
    before: bytes | None
    mode: int = 0o644


class FileRemoval(msgspec.Struct, frozen=True):
    """No file any more."""

    path: RelativePath


class FileRename(msgspec.Struct, frozen=True):
    """Another name, where nothing is, for a file."""

    path: RelativePath
    target: RelativePath


FileChange = FileWrite | FileRemoval | FileRename
"""One change of files; a later one of several finds what an earlier one made."""


# What the person is shown of a turn, beside what the model is told.


class TurnEvent(msgspec.Struct, frozen=True):
    """One thing that the person is shown of a turn, beside what the model is told."""


class TurnDeltaKind(StrEnum):
    """What a piece that is shown at once belongs to."""

    TEXT = "text"
    THINKING = "thinking"
    OUTPUT = "output"


class TurnDelta(TurnEvent, frozen=True):
    """A piece of what an item will be as a whole; it is not kept."""

    item: str
    sort: TurnDeltaKind
    text: str


class ModelText(TurnEvent, frozen=True):
    """The model has said this, or let see that it thinks this.

    `continues` says that it goes on with a text that was cut off.
    """

    item: str
    text: str
    is_thinking: bool = False
    continues: bool = False


class ToolUse(TurnEvent, frozen=True):
    """A tool is about to be used."""

    item: str
    tool: str
    title: str
    arguments: dict[str, object]


class ToolUseEnded(TurnEvent, frozen=True):
    """A tool has been used, with this result."""

    item: str
    done: ToolResult


class TurnQuestion(TurnEvent, frozen=True):
    """The turn waits for the person; the last choice is the refusal."""

    question: str
    title: str
    detail: str = ""
    choices: tuple[str, ...] = ()
    item: str = ""
    is_leave: bool = False


class TurnUsage(TurnEvent, frozen=True):
    """What the conversation has taken so far, and how full the model is."""

    choice: ModelChoice
    tokens: Tokens
    context: int
    window: int | None
    cost_usd: float | None


class TurnNote(TurnEvent, frozen=True):
    """Something that the person may want to know."""

    text: str
    failure: dict[str, object] | None = None


class TurnWaiting(TurnEvent, frozen=True):
    """The turn waits for a model or a tool, for so many seconds by now; it is not kept."""

    what: str
    seconds: float


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # the answer was cut or empty, also when asked again
    REFUSED = "refused"  # by the provider


class TurnOver(TurnEvent, frozen=True):
    """The turn is over; always the last."""

    ending: TurnOutcome
    failure: dict[str, object] | None = None


AnyTurnEvent = (
    TurnDelta
    | ModelText
    | ToolUse
    | ToolUseEnded
    | TurnQuestion
    | TurnUsage
    | TurnNote
    | TurnWaiting
    | TurnOver
)
"""Everything that the person is shown of a turn."""
