"""State of a session, as a fold over its records, and decisions on commands.

    idle ──prompt──▶ running ──asked──▶ waiting
      ▲                 │   ◀──answer──    │
      └── turn closed ──┴──────────────────┘

    command ──decide──▶ records ──(durable)──▶ fold ──▶ SessionState

Pure: no I/O and no clock. The journal is the only source: any process that folds the same records
has the same state. A command takes effect only by its records, which contain its id; so a repeated
command is recognized, also by the next host after a crash.

Caveats:

- Turn numbers increase but may have gaps: a prompt whose write failed has used its number.
- `is_running` survives the host. A host that finds it set at start ends that turn (`resumed`).
- `commands` is bounded: ids are recognized for the last COMMANDS_KEPT commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.host.failures import (
    ChoiceUnknown,
    CommandReused,
    LeaseOutdated,
    NothingRuns,
    QuestionGone,
    SessionClosed,
    TooManyPrompts,
)
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    CloseCommand,
    EventRecorded,
    HostCommand,
    LeaseTaken,
    PromptCommand,
    PromptQueued,
    PromptWithdrawn,
    PublicationRecorded,
    PublicationStarted,
    QuestionAnswered,
    RevisionRecorded,
    SessionEnded,
    SessionOpened,
    SteerCommand,
    SteeringAccepted,
    ToolsRepaired,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.runners.model import QuestionAsked, SessionKnown, ToolEnded, ToolStarted, UsageUpdated

WAITING_MAX: Final = 100  # queued prompts
COMMANDS_KEPT: Final = 1_000  # command ids that are remembered


class SessionPhase(StrEnum):
    """Phase of a session."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"  # a question to the person is open
    CLOSED = "closed"


class SessionState(msgspec.Struct, frozen=True):
    """State of a session."""

    id: str = ""
    project: str = ""
    draft: str = ""
    runner: str = ""
    attempt: int = 0
    reason: str = ""  # how the host ended that a running turn began with
    generation: int = 0  # of the newest lease
    turn: int = 0  # number of the last turn that began
    turn_at_ms: int = 0  # when it began
    is_running: bool = False
    # The agent has completed the running turn; publication and report may be left.
    is_done: bool = False
    is_closed: bool = False
    aborting: int = 0  # number of the turn to abort
    waiting: tuple[PromptQueued, ...] = ()  # queued prompts, in order
    questions: tuple[QuestionAsked, ...] = ()  # open questions
    answers: dict[str, str] = {}  # of the last turn, by question
    tools: tuple[str, ...] = ()  # started tool calls without an end
    runner_session: str | None = None
    revision: int | None = None
    publishing: str | None = None  # idempotency key, while the last turn is published
    used: UsageUpdated | None = None
    failure: dict[str, object] | None = None  # of the last turn
    commands: dict[str, HostCommand] = {}

    @property
    def is_aborting(self) -> bool:
        """Whether the last turn is to be aborted, also if it has not begun."""
        return self.aborting == self.turn > 0

    @property
    def phase(self) -> SessionPhase:
        """The phase, derived from the other fields."""
        if self.is_running:
            return SessionPhase.WAITING if self.questions else SessionPhase.RUNNING
        return SessionPhase.CLOSED if self.is_closed else SessionPhase.IDLE


def fold(session: SessionState, records: Iterable[AnyRecord]) -> SessionState:
    """Apply records to a state."""
    for record in records:
        session = _after(session, record)
    return session


def decide(session: SessionState, command: HostCommand, *, at_ms: int) -> tuple[AnyRecord, ...]:
    """Return the records for a command; none if it was accepted before.

    Raises the failure if the command is not valid now.
    """
    before = session.commands.get(command.id)
    if before is not None:
        if before != _plain(command):
            raise CommandReused(command=command.id)
        return ()
    if session.is_closed and not isinstance(command, CloseCommand):
        raise SessionClosed(session=session.id)
    match command:
        case PromptCommand() | SteerCommand():
            if len(session.waiting) >= WAITING_MAX:
                raise TooManyPrompts(waiting=len(session.waiting))
            # A prompt whose write failed may have used a number, so numbers can have gaps.
            turn = max(session.turn, *(each.turn for each in session.waiting), 0) + 1
            meant = _plain(command)
            assert isinstance(meant, PromptCommand)
            return (PromptQueued(meant.id, turn, meant.text, at_ms, meant.how, meant.is_in_place),)
        case AnswerCommand(id, question, answer, by):
            return (QuestionAnswered(question, _checked(session, question, answer), by, id),)
        case AbortCommand():
            return (_ended(session, command),)
        case CloseCommand(id):
            return (SessionEnded(id, at_ms),)


def lead(session: SessionState, generation: int) -> tuple[AnyRecord, ...]:
    """Return the records for a new leader; raises LeaseOutdated."""
    if generation < session.generation:
        raise LeaseOutdated(given=generation, newest=session.generation)
    return (LeaseTaken(generation),) if generation > session.generation else ()


def next_turn(session: SessionState, *, at_ms: int) -> TurnBegun | None:
    """Return the record that begins the next turn, if one can begin."""
    if session.is_running or session.is_closed or not session.waiting:
        return None
    return TurnBegun(session.waiting[0].turn, at_ms)


def _ended(session: SessionState, abort: AbortCommand) -> TurnAborted | PromptWithdrawn:
    if any(each.turn == abort.turn for each in session.waiting):
        return PromptWithdrawn(abort.id, abort.turn)
    if not session.is_running or abort.turn not in {0, session.turn}:
        raise NothingRuns(session=session.id)
    return TurnAborted(abort.id, session.turn)


def _checked(session: SessionState, question: str, answer: str) -> str:
    asked = next((each for each in session.questions if each.question == question), None)
    if asked is None:
        raise QuestionGone(question=question)
    words = [choice.word for choice in asked.choices]
    if words and answer not in words:
        raise ChoiceUnknown(answer=answer, choices=", ".join(words))
    return answer


def resumed(session: SessionState, *, at_ms: int, reason: str) -> tuple[AnyRecord, ...]:
    """Return the records with which a new host takes over.

    The agent of a running turn is gone, and the effects of its open tool calls are unknown. The
    turn itself is closed later, after it was reported or published.
    """
    begun = AttemptStarted(session.attempt + 1, at_ms, reason if session.is_running else "")
    if not session.is_running:
        return (begun,)
    unanswered = (
        QuestionAnswered(asked.question, asked.refusal, AnswerSource.NOBODY)
        for asked in session.questions
    )
    repaired = (ToolsRepaired(session.turn, session.tools),) if session.tools else ()
    return (begun, *unanswered, *repaired)


def _after(session: SessionState, record: AnyRecord) -> SessionState:
    match record:
        case SessionOpened(id, project, draft, runner):
            return replace(session, id=id, project=project, draft=draft, runner=runner)
        case AttemptStarted(attempt, _, reason):
            return replace(session, attempt=attempt, reason=reason, is_closed=False)
        case LeaseTaken(generation):
            return replace(session, generation=max(generation, session.generation))
        case EventRecorded(event=event):
            return _after_event(session, event)
        case (
            TurnBegun()
            | ToolsRepaired()
            | RevisionRecorded()
            | PublicationStarted()
            | PublicationRecorded()
            | TurnClosed()
        ):
            return _after_step(session, record)
        case _:
            return _after_command(session, record)


def _after_step(
    session: SessionState,
    record: TurnBegun
    | ToolsRepaired
    | RevisionRecorded
    | PublicationStarted
    | PublicationRecorded
    | TurnClosed,
) -> SessionState:
    match record:
        case TurnBegun(turn, at_ms):
            waiting = tuple(each for each in session.waiting if each.turn != turn)
            begun = replace(session, turn=turn, turn_at_ms=at_ms, waiting=waiting, is_running=True)
            return replace(begun, answers={}, failure=None)
        case ToolsRepaired(items=items):
            return replace(session, tools=tuple(_without(session.tools, items)))
        case RevisionRecorded(revision=revision):
            return replace(session, revision=revision)
        case PublicationStarted(key=key):
            return replace(session, publishing=key, is_done=True)
        case PublicationRecorded():
            return replace(session, publishing=None)
        case TurnClosed(failure=failure):
            rested = replace(session, is_running=False, is_done=False, publishing=None, reason="")
            return replace(rested, questions=(), tools=(), failure=failure)


def _without(tools: tuple[str, ...], items: Collection[str]) -> Iterator[str]:
    return (each for each in tools if each not in items)


def _after_event(session: SessionState, event: object) -> SessionState:
    match event:
        case SessionKnown(runner_session):
            return replace(session, runner_session=runner_session)
        case ToolStarted(item):
            return replace(session, tools=(*session.tools, item))
        case ToolEnded(item):
            return replace(session, tools=tuple(_without(session.tools, (item,))))
        case QuestionAsked():
            return replace(session, questions=(*session.questions, event))
        case UsageUpdated():
            return replace(session, used=event)
        case _:
            return session


def _after_command(session: SessionState, record: AnyRecord) -> SessionState:
    match record:
        case PromptQueued(id, _, text, _, how, is_in_place):
            waiting = (*session.waiting, record)
            return replace(
                _noted(session, PromptCommand(id, text, how, is_in_place)), waiting=waiting
            )
        case SteeringAccepted(id, _, text):
            return _noted(session, SteerCommand(id, text))
        case QuestionAnswered(question, answer, by, id):
            left = tuple(each for each in session.questions if each.question != question)
            noted = _noted(session, AnswerCommand(id, question, answer, by)) if id else session
            return replace(noted, questions=left, answers={**session.answers, question: answer})
        case TurnAborted(id, turn):
            # Prompts that were queued behind the aborted turn are dropped with it.
            return replace(_noted(session, AbortCommand(id)), aborting=turn, waiting=())
        case PromptWithdrawn(id, turn):
            waiting = tuple(each for each in session.waiting if each.turn != turn)
            return replace(_noted(session, AbortCommand(id)), waiting=waiting)
        case SessionEnded(id):
            return replace(_noted(session, CloseCommand(id)), is_closed=True, waiting=())
        case _:
            raise AssertionError(f"{record} is no record")


def _noted(session: SessionState, command: HostCommand) -> SessionState:
    known = {**session.commands, command.id: _plain(command)}
    if len(known) > COMMANDS_KEPT:
        del known[next(iter(known))]
    return replace(session, commands=known)


def _plain(command: HostCommand) -> HostCommand:
    """Normalize a command for comparison with a repeated one.

    Steering that became a prompt equals that prompt. The turn number of an abort is not recorded
    unless it was given, so it is ignored.
    """
    match command:
        case SteerCommand(id, text):
            return PromptCommand(id, text)
        case AbortCommand(id):
            return AbortCommand(id)
        case _:
            return command
