"""Messages, conversation records, provider deltas and turn events of the agent.

Four vocabularies, from the disk to the screen:

  messages   UserMessage, ModelMessage, ToolMessage: the content of a conversation
  records    ConversationRecord: what the agent appends to the session's journal; folding
             the records in order rebuilds the conversation tree (history/tree.py)
  deltas     AnswerDelta: parts of one streamed answer of a provider
  events     TurnEvent: what clients display of a turn; never needed to rebuild it

Tags and field names of messages and records are part of the journal format. They keep their old
spelling when a class is renamed, so that old journals stay readable.

Messages and records are allocated by the thousand and never form a reference cycle, so they opt out
of garbage collection (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

from holdfast.nouns import RelativePath


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A tool call requested by the model; `arguments` is JSON, unless the model got it wrong.

    `opaque` is JSON that the provider requires to be sent back unchanged with the call.
    """

    id: str
    tool: str
    arguments: str
    opaque: str = ""


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Reasoning text that the provider returned; `proof` is sent back to it unchanged."""

    text: str
    proof: str = ""


class ConversationMessage(
    msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True, gc=False
):
    """Base class of the messages of a conversation."""


class Origin(StrEnum):
    """Where the text of a user message comes from."""

    PERSON = "person"
    STEERING = "steering"  # typed by the person during a turn
    SKILL = "skill"
    NOTICE = "notice"  # from the agent itself, about an event such as an interruption


class UserMessage(ConversationMessage, frozen=True, tag="user"):
    """Input to the model."""

    text: str
    origin: Origin = Origin.PERSON


THINKING: Final = "thinking"
CALL: Final = "call"

BlockOrder = tuple[int | str, ...]
"""Block kinds in the order of the provider's stream:

`THINKING`, `CALL`, or a length of text in characters. Empty for the default order (thinking, text,
calls), which journals without the field have, too.
"""


class ModelMessage(ConversationMessage, frozen=True, tag="model"):
    """One complete answer of a model."""

    text: str = ""
    thinking: tuple[Thinking, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    provider: str = ""
    model: str = ""
    order: BlockOrder = ()

    def blocks(self) -> Iterator[Thinking | str | ToolCall]:
        """Yield thinking, text and calls in the order of the provider's stream."""
        thinking, calls, at = iter(self.thinking), iter(self.calls), 0
        for part in self.order:
            if isinstance(part, int):
                yield self.text[at : at + part]
                at += part
            elif (block := next(thinking if part == THINKING else calls, None)) is not None:
                yield block
        # Repair may have dropped calls since `order` was recorded, so the order can be shorter or
        # longer than the blocks. Yield the rest in the default order instead of losing it.
        yield from thinking
        if at < len(self.text):
            yield self.text[at:]
        yield from calls

    def sendable(self) -> Iterator[Thinking | str | ToolCall]:
        """Yield the blocks without trailing thinking, which a truncated answer may have.

        Providers reject a message that ends with a thinking block.
        """
        blocks = list(self.blocks())
        while blocks and _is_trailing(blocks[-1]):
            blocks.pop()
        return iter(blocks)


def _is_trailing(block: Thinking | str | ToolCall) -> bool:
    return isinstance(block, Thinking) or (isinstance(block, str) and not block.strip())


class ToolMessage(ConversationMessage, frozen=True, tag="tool"):
    """The result of a tool call as the model receives it."""

    call: str
    text: str
    is_error: bool = False


AnyMessage = UserMessage | ModelMessage | ToolMessage
"""Any message of a conversation."""


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Token usage of one answer.

    `cached` (cache reads) and `written` (cache writes) are included in `input`.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    written: int = 0


def order_of(blocks: Iterable[Thinking | str | ToolCall]) -> BlockOrder:
    """Return the stream order of blocks for `ModelMessage.order`; empty for the default order."""
    parts = tuple(_part(block) for block in blocks)
    ranks = [{THINKING: 0, CALL: 2}.get(str(part), 1) for part in parts]
    is_usual = ranks == sorted(ranks) and ranks.count(1) <= 1
    return () if is_usual else parts


def _part(block: Thinking | str | ToolCall) -> int | str:
    if isinstance(block, str):
        return len(block)
    return THINKING if isinstance(block, Thinking) else CALL


# Requests to a model, and the deltas of its answer.


class ModelChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A provider, a model and a reasoning effort."""

    provider: str
    model: str
    effort: str = ""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as it is described to the model; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, object]


class PromptMessage(msgspec.Struct, frozen=True, gc=False):
    """A message with the id of its tree entry, which is the cache key of its encoded bytes."""

    id: str
    message: AnyMessage


class ModelRequest(msgspec.Struct, frozen=True):
    """One request to a model."""

    system: str
    said: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    output_max: int | None = None  # tokens


class StopReason(StrEnum):
    """Why a model ended its answer."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


class AnswerDelta(msgspec.Struct, frozen=True):
    """A part of an answer that is still streaming."""


class TextDelta(AnswerDelta, frozen=True):
    text: str


class ThinkingDelta(AnswerDelta, frozen=True):
    text: str


class ToolCallDelta(AnswerDelta, frozen=True):
    """More arguments of a tool call; `tool` is set in the first delta of each `index`."""

    index: int
    tool: str
    text: str


class RetryScheduled(AnswerDelta, frozen=True):
    """The request failed and is sent again after a delay, by Retry-After or by our backoff."""

    seconds: float
    failure: dict[str, object]
    attempt: int


class AnswerDiscarded(AnswerDelta, frozen=True):
    """The deltas of this answer so far are void: the request is sent again from the same head."""

    failure: dict[str, object]


class AnswerCompleted(AnswerDelta, frozen=True):
    """The answer is complete; always the last delta."""

    message: ModelMessage
    stop: StopReason
    tokens: Tokens


AnyAnswerDelta = (
    TextDelta | ThinkingDelta | ToolCallDelta | RetryScheduled | AnswerDiscarded | AnswerCompleted
)
"""Any delta of an answer."""


class ConversationRecord(
    msgspec.Struct, frozen=True, tag_field="memo", omit_defaults=True, gc=False
):
    """Base class of the records that the agent appends to the session's journal."""


class MessageAppended(ConversationRecord, frozen=True, tag="entered"):
    """A message was appended to entry `after` (empty: at the root), and is the new head."""

    id: str
    after: str
    message: AnyMessage


class HistoryCompacted(ConversationRecord, frozen=True, tag="compacted"):
    """A summary replaces all entries before `keeps` in requests to the model.

    It is an entry of the tree, appended to `after`, and the new head. Nothing is deleted.
    """

    id: str
    after: str
    summary: str
    keeps: str
    tokens_before: int
    tokens_after: int


class HeadMoved(ConversationRecord, frozen=True, tag="moved"):
    """The head moved to an existing entry; later entries stay in the tree as a branch."""

    head: str


class ToolCallStarted(ConversationRecord, frozen=True, tag="tool_begun"):
    """A tool call is about to run: from here on it may have had effects."""

    call: str


class ToolCallRepaired(ConversationRecord, frozen=True, tag="mended"):
    """A tool call will never have a result; `text` is sent to the model in its place."""

    call: str
    text: str


class SteeringQueued(ConversationRecord, frozen=True, tag="queued"):
    """The person steered the running turn; the text is not in the conversation yet."""

    id: str
    text: str


class SteeringDequeued(ConversationRecord, frozen=True, tag="dequeued"):
    """Queued steering became a message, or was dropped."""

    id: str


class UsageRecorded(ConversationRecord, frozen=True, tag="spent"):
    """Token usage and cost of one answer, including answers that were discarded."""

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
"""Any record of a conversation."""


# Values that tools take and return.


class TaskProgress(StrEnum):
    """State of a task."""

    OPEN = "open"
    BEGUN = "begun"
    DONE = "done"


class Task(msgspec.Struct, frozen=True):
    """A task on the model's list."""

    number: int
    text: str
    progress: TaskProgress = TaskProgress.OPEN


class ToolResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of a tool: `text` for the model, `shown` for the person."""

    text: str
    is_error: bool = False
    shown: str | None = None  # None: the same as `text`
    status: int | None = None
    paths: tuple[str, ...] = ()  # of changed files
    plan: tuple[Task, ...] | None = None  # the complete new task list, if the tool changed it
    spent: tuple[UsageRecorded, ...] = ()  # by sub-agents


class FileKind(StrEnum):
    """Type of a directory entry."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class FileInfo(msgspec.Struct, frozen=True):
    """Metadata of a path; `size` in bytes."""

    sort: FileKind
    size: int
    mode: int


class FileWrite(msgspec.Struct, frozen=True):
    """Write a file, if its content still equals `before` (None: the file must not exist).

    An existing file keeps its mode.
    """

    path: RelativePath
    data: bytes
    before: bytes | None
    mode: int = 0o644


class FileRemoval(msgspec.Struct, frozen=True):
    """Remove a file."""

    path: RelativePath


class FileRename(msgspec.Struct, frozen=True):
    """Rename a file to a path that does not exist."""

    path: RelativePath
    target: RelativePath


FileChange = FileWrite | FileRemoval | FileRename
"""One change of a batch; each change applies to the result of the changes before it."""


# Events of a turn for display.


class TurnEvent(msgspec.Struct, frozen=True):
    """Base class of what clients display of a turn."""


class TurnDeltaKind(StrEnum):
    """Which part of the output a delta belongs to."""

    TEXT = "text"
    THINKING = "thinking"
    OUTPUT = "output"


class TurnDelta(TurnEvent, frozen=True):
    """A piece of output, displayed at once and not recorded."""

    item: str
    sort: TurnDeltaKind
    text: str


class ModelText(TurnEvent, frozen=True):
    """A complete text or thinking block of the model.

    `continues` joins it to the previous text, which was truncated at the output limit.
    """

    item: str
    text: str
    is_thinking: bool = False
    continues: bool = False


class ToolUse(TurnEvent, frozen=True):
    """A tool call starts."""

    item: str
    tool: str
    title: str
    arguments: dict[str, object]


class ToolUseEnded(TurnEvent, frozen=True):
    """A tool call ended."""

    item: str
    done: ToolResult


class TurnQuestion(TurnEvent, frozen=True):
    """The turn waits for the person; the last choice is the refusal."""

    question: str
    title: str
    detail: str = ""
    choices: tuple[str, ...] = ()
    item: str = ""
    is_permission: bool = False


class TurnUsage(TurnEvent, frozen=True):
    """Token usage and cost of the conversation so far; `context` tokens of `window` are used."""

    choice: ModelChoice
    tokens: Tokens
    context: int
    window: int | None
    cost_usd: float | None


class TurnNote(TurnEvent, frozen=True):
    """A notice for the person."""

    text: str
    failure: dict[str, object] | None = None


class TurnWaiting(TurnEvent, frozen=True):
    """The turn has been waiting for a model or tool for this many seconds; not recorded."""

    what: str
    seconds: float


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # the answer was truncated or empty, and retries did not help
    REFUSED = "refused"  # by the provider's content policy


class TurnOver(TurnEvent, frozen=True):
    """The turn is over; always the last event."""

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
"""Any event of a turn."""
