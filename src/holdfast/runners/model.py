"""Events of runners: one vocabulary for all agents, from runner to screen.

Tags and field names are part of the journal format: they keep their old spelling when a class is
renamed. Unknown fields are ignored, so that older versions can read newer journals.

A turn is `TurnStarted`, any other events, `TurnEnded`. `Delta` and `WaitingReported` are displayed
and never recorded; the complete item follows its deltas.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Reasoning efforts; not every model supports each."""


class RunnerEvent(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Base class of the events of a turn."""


class DeltaKind(StrEnum):
    """Which part of the output a delta belongs to."""

    TEXT = "text"
    THOUGHT = "thought"
    OUTPUT = "output"


class Delta(RunnerEvent, frozen=True, tag="delta"):
    """A piece of an item's text, displayed at once and never recorded."""

    item: str
    sort: DeltaKind
    text: str


class SessionKnown(RunnerEvent, frozen=True, tag="session_known"):
    """The runner's id of the conversation, by which another process can continue it."""

    session: str


class TurnStarted(RunnerEvent, frozen=True, tag="turn_started"):
    """The runner accepted the prompt."""


class TextCompleted(RunnerEvent, frozen=True, tag="said"):
    """A complete text of the agent.

    `continues` joins it to the previous text, which was truncated.
    """

    item: str
    text: str
    continues: bool = False


class ThinkingCompleted(RunnerEvent, frozen=True, tag="thought"):
    """A complete thinking block of the agent."""

    item: str
    text: str


class ToolStarted(RunnerEvent, frozen=True, tag="tool_started"):
    """A tool call starts; `ToolEnded` follows."""

    item: str
    tool: str
    title: str
    input: dict[str, object] = {}


class ToolEnded(RunnerEvent, frozen=True, tag="tool_ended"):
    """A tool call ended; `left_out` characters of its output are omitted."""

    item: str
    is_ok: bool
    output: str = ""
    left_out: int = 0
    status: int | None = None


class FilesChanged(RunnerEvent, frozen=True, tag="files_changed"):
    """Files that the agent reports as changed."""

    item: str
    paths: tuple[str, ...]


class PlanProgress(StrEnum):
    """State of a step."""

    OPEN = "open"
    BEGUN = "begun"
    DONE = "done"


class PlanStep(msgspec.Struct, frozen=True):
    """A step of the agent's plan."""

    text: str
    progress: PlanProgress


class PlanUpdated(RunnerEvent, frozen=True, tag="planned"):
    """The agent's complete plan, which replaces the previous one."""

    steps: tuple[PlanStep, ...]


class AnswerChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer to a question; `is_refusal` is the default if there is no answer."""

    word: str
    meaning: str = ""
    is_refusal: bool = False


class QuestionAsked(RunnerEvent, frozen=True, tag="asked"):
    """The agent waits for the person: a permission request or a question.

    Without choices any text is an answer, and an empty one is the refusal.
    """

    question: str
    title: str
    detail: str = ""
    choices: tuple[AnswerChoice, ...] = ()
    item: str = ""
    is_approval: bool = False

    @property
    def refusal(self) -> str:
        """The default answer."""
        return next((choice.word for choice in self.choices if choice.is_refusal), "")


class UsageUpdated(RunnerEvent, frozen=True, tag="used"):
    """Token usage and cost of the conversation, and the size of the context window."""

    model: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    context_tokens: int = 0
    window_tokens: int | None = None
    cost_usd: float | None = None


class NoticeIssued(RunnerEvent, frozen=True, tag="noticed"):
    """A notice for the person; a failure in it did not end the turn."""

    text: str
    failure: dict[str, object] | None = None


class WaitingReported(RunnerEvent, frozen=True, tag="awaiting"):
    """The agent is healthy and has been waiting for this many seconds; never recorded."""

    what: str  # `provider/model`, or a tool
    seconds: float


class MemoryRecorded(RunnerEvent, frozen=True, tag="remembered"):
    """State that a runner stores in the journal, and reads back to continue; not displayed."""

    memo: msgspec.Raw


class TurnEnding(StrEnum):
    """How a turn ended; all but completed and interrupted ones have a failure."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # the answer was truncated or empty
    REFUSED = "refused"  # by the provider


class TurnEnded(RunnerEvent, frozen=True, tag="turn_ended"):
    """The turn is over; always the last event."""

    ending: TurnEnding
    failure: dict[str, object] | None = None


AnyEvent = (
    Delta
    | SessionKnown
    | TurnStarted
    | TextCompleted
    | ThinkingCompleted
    | ToolStarted
    | ToolEnded
    | FilesChanged
    | PlanUpdated
    | QuestionAsked
    | UsageUpdated
    | NoticeIssued
    | WaitingReported
    | MemoryRecorded
    | TurnEnded
)
"""Any event of a runner."""


class RunnerCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner supports."""

    continues: bool = False  # conversations outlive the runner's process
    steers: bool = False  # input during a turn
    asks: bool = False  # permission requests
    confines: bool = False  # sandboxes its own commands
    is_offline: bool = False  # no network access
    options: tuple[str, ...] = ()  # names of options of a turn


class RunnerHealth(msgspec.Struct, frozen=True):
    """Whether a runner can be used; if not, why, and what to do."""

    is_healthy: bool
    version: str = ""
    reason: str = ""
    remedy: str = ""
