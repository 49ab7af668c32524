"""What every runner says while it carries a turn out, in the same words whoever it is."""

from __future__ import annotations

from enum import StrEnum

import msgspec

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model can be told to think; not every model knows every word."""


class RunnerEvent(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """One thing that happened in a turn; what this version does not know of it is ignored."""


class DeltaKind(StrEnum):
    """What a piece of something that is still being made belongs to."""

    TEXT = "text"
    THOUGHT = "thought"
    OUTPUT = "output"


class Delta(RunnerEvent, frozen=True, tag="delta"):
    """A piece of what an item will say as a whole: shown at once, and never kept."""

    item: str
    sort: DeltaKind
    text: str


class SessionKnown(RunnerEvent, frozen=True, tag="session_known"):
    """By this word the runner continues the conversation, also in another process."""

    session: str


class TurnStarted(RunnerEvent, frozen=True, tag="turn_started"):
    """The runner has taken the prompt."""


class TextCompleted(RunnerEvent, frozen=True, tag="said"):
    """The agent said something to the person.

    `continues` says that its text goes on where the one before, which was cut off, has stopped.
    """

    item: str
    text: str
    continues: bool = False


class ThinkingCompleted(RunnerEvent, frozen=True, tag="thought"):
    """The agent let see what it thinks."""

    item: str
    text: str


class ToolStarted(RunnerEvent, frozen=True, tag="tool_started"):
    """The agent is about to do something; what it came to, `ToolEnded` says."""

    item: str
    tool: str
    title: str
    input: dict[str, object] = {}


class ToolEnded(RunnerEvent, frozen=True, tag="tool_ended"):
    """What the agent did came to this; so many characters of its output are left out."""

    item: str
    is_ok: bool
    output: str = ""
    left_out: int = 0
    status: int | None = None


class FilesChanged(RunnerEvent, frozen=True, tag="files_changed"):
    """The agent has changed these files, as far as it says so itself."""

    item: str
    paths: tuple[str, ...]


class PlanProgress(StrEnum):
    """How far a step of a plan is."""

    OPEN = "open"
    BEGUN = "begun"
    DONE = "done"


class PlanStep(msgspec.Struct, frozen=True):
    """One thing that the agent means to do."""

    text: str
    progress: PlanProgress


class PlanUpdated(RunnerEvent, frozen=True, tag="planned"):
    """What the agent means to do from now on; it replaces what it meant before."""

    steps: tuple[PlanStep, ...]


class AnswerChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the answers to a question; `is_refusal` is the one that is taken if nobody answers."""

    word: str
    meaning: str = ""
    is_refusal: bool = False


class QuestionAsked(RunnerEvent, frozen=True, tag="asked"):
    """The agent waits for a person: it wants leave for something, or to know something.

    Without choices any words are an answer, and none at all is the refusal.
    """

    question: str
    title: str
    detail: str = ""
    choices: tuple[AnswerChoice, ...] = ()
    item: str = ""
    is_approval: bool = False

    @property
    def refusal(self) -> str:
        """What is answered where nobody does."""
        return next((choice.word for choice in self.choices if choice.is_refusal), "")


class UsageUpdated(RunnerEvent, frozen=True, tag="used"):
    """What the conversation has taken so far, and what fits into the model at once."""

    model: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    context_tokens: int = 0
    window_tokens: int | None = None
    cost_usd: float | None = None


class NoticeIssued(RunnerEvent, frozen=True, tag="noticed"):
    """Something that the person may want to know; with a failure, one that did not end the turn."""

    text: str
    failure: dict[str, object] | None = None


class WaitingReported(RunnerEvent, frozen=True, tag="awaiting"):
    """The agent is well and waits, for so many seconds by now: shown at once, and never kept."""

    what: str  # a model by its provider and name, or a tool
    seconds: float


class MemoryRecorded(RunnerEvent, frozen=True, tag="remembered"):
    """What a runner keeps for itself, and reads back when it goes on; it is shown to nobody."""

    memo: msgspec.Raw


class TurnEnding(StrEnum):
    """How a turn ended; only a completed one has an answer, and any other than
    an interrupted one has a failure.
    """

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    INCOMPLETE = "incomplete"  # the model ended without an answer: it was cut, or empty
    REFUSED = "refused"  # the provider would not answer


class TurnEnded(RunnerEvent, frozen=True, tag="turn_ended"):
    """The turn is over, always the last of its events; a failure says why, as in the contract."""

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
"""Everything that a runner can say."""


class RunnerCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked of a runner."""

    continues: bool = False  # a conversation outlives the runner's process
    steers: bool = False  # a running turn takes further words
    asks: bool = False  # it asks before it does what needs leave
    confines: bool = False  # it shuts its own commands in
    is_offline: bool = False  # nothing leaves the machine
    options: tuple[str, ...] = ()  # how a turn is to be taken, as far as it can be told


class RunnerHealth(msgspec.Struct, frozen=True):
    """Whether a runner can be used here and now, and if not, why and what to do."""

    is_healthy: bool
    version: str = ""
    reason: str = ""
    remedy: str = ""
