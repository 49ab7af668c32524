"""Records of a session's journal, and commands to a host.

Tags and field names are part of the journal format: they keep their old spelling when a class is
renamed. Unknown fields are ignored, so that older versions can read newer journals.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from holdfast.runners.model import AnyEvent, TurnEnding


class HostRecord(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True):
    """Base class of the records in a session's journal."""


class SessionOpened(HostRecord, frozen=True, tag="opened"):
    """The session was created for a project, a draft and a runner."""

    session: str
    project: str
    draft: str
    runner: str
    at_ms: int


class AttemptStarted(HostRecord, frozen=True, tag="begun"):
    """A host took over the session; `reason` says how the previous attempt ended."""

    attempt: int
    at_ms: int
    reason: str = ""


class LeaseTaken(HostRecord, frozen=True, tag="led"):
    """A client with this lease generation leads the session; older leases are refused."""

    generation: int


class PromptQueued(HostRecord, frozen=True, tag="prompted"):
    """A prompt was accepted; it runs in the turn of this number."""

    command: str
    turn: int
    text: str
    at_ms: int
    how: dict[str, str] = {}
    is_in_place: bool = False


class SteeringAccepted(HostRecord, frozen=True, tag="steered"):
    """The runner accepted additional input for the running turn."""

    command: str
    turn: int
    text: str


class AnswerSource(StrEnum):
    """Where an answer comes from."""

    PERSON = "person"
    UNATTENDED = "unattended"  # the leading client runs without a person
    NOBODY = "nobody"  # timeout, or the turn ended first


class QuestionAnswered(HostRecord, frozen=True, tag="answered"):
    """A question of the agent was answered."""

    question: str
    answer: str
    by: AnswerSource
    command: str = ""


class TurnAborted(HostRecord, frozen=True, tag="aborted"):
    """The running turn is to be aborted."""

    command: str
    turn: int


class PromptWithdrawn(HostRecord, frozen=True, tag="withdrawn"):
    """A queued prompt was withdrawn before its turn began."""

    command: str
    turn: int


class TurnBegun(HostRecord, frozen=True, tag="turn_begun"):
    """The turn began: the runner receives its prompt."""

    turn: int
    at_ms: int


class EventRecorded(HostRecord, frozen=True, tag="happened"):
    """An event of the runner."""

    turn: int
    event: AnyEvent


class ToolsRepaired(HostRecord, frozen=True, tag="repaired"):
    """Tool calls that never reported their end: they may or may not have completed."""

    turn: int
    items: tuple[str, ...]


class RevisionRecorded(HostRecord, frozen=True, tag="revised"):
    """The draft has a revision of the state after this turn."""

    turn: int
    revision: int
    checkpoint: str


class PublicationStarted(HostRecord, frozen=True, tag="publishing"):
    """Publication of this turn begins; the key makes it idempotent across crashes."""

    turn: int
    key: str


class PublicationRecorded(HostRecord, frozen=True, tag="published"):
    """This many paths were published; the checkpoint has the project as it was before."""

    turn: int
    paths: int
    checkpoint: str | None = None


class TurnClosed(HostRecord, frozen=True, tag="turn_closed"):
    """The turn is over; `report` is the path of its report."""

    turn: int
    ending: TurnEnding
    at_ms: int
    failure: dict[str, object] | None = None
    report: str = ""


class SessionEnded(HostRecord, frozen=True, tag="closed"):
    """The session was ended; it can still be read, and resumed."""

    command: str
    at_ms: int


AnyRecord = (
    SessionOpened
    | AttemptStarted
    | LeaseTaken
    | PromptQueued
    | SteeringAccepted
    | QuestionAnswered
    | TurnAborted
    | PromptWithdrawn
    | TurnBegun
    | EventRecorded
    | ToolsRepaired
    | RevisionRecorded
    | PublicationStarted
    | PublicationRecorded
    | TurnClosed
    | SessionEnded
)
"""Any record of a session."""


class PromptCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """Run a prompt, after the running turn. With `is_in_place`, publish the result.

    `how` are options for the runner.
    """

    id: str
    text: str
    how: dict[str, str] = {}
    is_in_place: bool = False


class SteerCommand(msgspec.Struct, frozen=True):
    """Add input to the running turn; if it accepts none, queue it as a prompt."""

    id: str
    text: str


class AnswerCommand(msgspec.Struct, frozen=True):
    """Answer a question of the agent."""

    id: str
    question: str
    answer: str
    by: AnswerSource = AnswerSource.PERSON


class AbortCommand(msgspec.Struct, frozen=True, omit_defaults=True):
    """Abort the running turn, and withdraw all queued prompts.

    With a turn number, abort only that turn, or withdraw only its prompt.
    """

    id: str
    turn: int = 0


class CloseCommand(msgspec.Struct, frozen=True):
    """End the running turn and the host; draft and journal remain."""

    id: str


HostCommand = PromptCommand | SteerCommand | AnswerCommand | AbortCommand | CloseCommand
"""Any command; a command that is repeated with the same id is executed once."""
