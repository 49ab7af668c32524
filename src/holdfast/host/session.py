"""Where a conversation stands, by all that was written down of it; and what may come next.

    idle ──prompt──▶ running ──asked──▶ waiting
      ▲                 │   ◀──answer──    │
      └── turn closed ──┴──────────────────┘

Nothing is known but by the journal: whoever reads it stands where its writer stood. A command is
decided upon here and takes effect by its record, so one that is repeated finds itself done.
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
    Abort,
    Aborted,
    Answer,
    Answered,
    AnyRecord,
    Begun,
    Close,
    Closed,
    Command,
    Happened,
    Led,
    Opened,
    Prompt,
    Prompted,
    Published,
    Publishing,
    Repaired,
    Revised,
    Steer,
    Steered,
    TurnBegun,
    TurnClosed,
    Who,
    Withdrawn,
)
from holdfast.runners.model import Asked, SessionKnown, ToolEnded, ToolStarted, Used

WAITING_MAX: Final = 100  # prompts
COMMANDS_KEPT: Final = 1_000  # so many are known when they are said again


class Phase(StrEnum):
    """What a session is doing."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"  # for the person's answer
    CLOSED = "closed"


class Session(msgspec.Struct, frozen=True):
    """Where a conversation stands."""

    id: str = ""
    project: str = ""
    draft: str = ""
    runner: str = ""
    attempt: int = 0
    reason: str = ""  # what became of the host that a running turn began with
    generation: int = 0  # of the newest lease
    turn: int = 0  # the number of the last turn that has begun
    turn_at_ms: int = 0  # when it began
    is_running: bool = False
    is_done: bool = False  # the agent has completed the turn that runs; the rest is up to hosts
    is_closed: bool = False
    aborting: int = 0  # the turn that is not wanted any more
    waiting: tuple[Prompted, ...] = ()  # for their turn, in order
    questions: tuple[Asked, ...] = ()  # that the agent waits for
    answers: dict[str, str] = {}  # given in the last turn
    tools: tuple[str, ...] = ()  # begun and not ended
    runner_session: str | None = None
    revision: int | None = None
    publishing: str | None = None  # the key, while the last turn goes into the project
    used: Used | None = None
    failure: dict[str, object] | None = None  # of the last turn
    commands: dict[str, Command] = {}

    @property
    def is_aborting(self) -> bool:
        """Whether the last turn is to end, or to end as soon as it begins."""
        return self.aborting == self.turn > 0

    @property
    def phase(self) -> Phase:
        """What it is doing, in a word."""
        if self.is_running:
            return Phase.WAITING if self.questions else Phase.RUNNING
        return Phase.CLOSED if self.is_closed else Phase.IDLE


def fold(session: Session, records: Iterable[AnyRecord]) -> Session:
    """Where a session stands after these records, too."""
    for record in records:
        session = _after(session, record)
    return session


def decide(session: Session, command: Command, *, at_ms: int) -> tuple[AnyRecord, ...]:
    """What is to be written down for a command; nothing if it was given before.

    Raises what is wrong with it; then nothing of it is done.
    """
    before = session.commands.get(command.id)
    if before is not None:
        if before != _plain(command):
            raise CommandReused(command=command.id)
        return ()
    if session.is_closed and not isinstance(command, Close):
        raise SessionClosed(session=session.id)
    match command:
        case Prompt() | Steer():
            if len(session.waiting) >= WAITING_MAX:
                raise TooManyPrompts(waiting=len(session.waiting))
            # One that found no room may have taken a number: those in use need not be dense.
            turn = max(session.turn, *(each.turn for each in session.waiting), 0) + 1
            meant = _plain(command)
            assert isinstance(meant, Prompt)
            return (Prompted(meant.id, turn, meant.text, at_ms, meant.how, meant.is_in_place),)
        case Answer(id, question, answer, by):
            return (Answered(question, _checked(session, question, answer), by, id),)
        case Abort():
            return (_ended(session, command),)
        case Close(id):
            return (Closed(id, at_ms),)


def lead(session: Session, generation: int) -> tuple[AnyRecord, ...]:
    """What is to be written down when somebody with a lease comes; raise if it is outdated."""
    if generation < session.generation:
        raise LeaseOutdated(given=generation, newest=session.generation)
    return (Led(generation),) if generation > session.generation else ()


def next_turn(session: Session, *, at_ms: int) -> TurnBegun | None:
    """The turn that is to begin now, if one is."""
    if session.is_running or session.is_closed or not session.waiting:
        return None
    return TurnBegun(session.waiting[0].turn, at_ms)


def _ended(session: Session, abort: Abort) -> Aborted | Withdrawn:
    if any(each.turn == abort.turn for each in session.waiting):
        return Withdrawn(abort.id, abort.turn)
    if not session.is_running or abort.turn not in {0, session.turn}:
        raise NothingRuns(session=session.id)
    return Aborted(abort.id, session.turn)


def _checked(session: Session, question: str, answer: str) -> str:
    asked = next((each for each in session.questions if each.question == question), None)
    if asked is None:
        raise QuestionGone(question=question)
    words = [choice.word for choice in asked.choices]
    if words and answer not in words:
        raise ChoiceUnknown(answer=answer, choices=", ".join(words))
    return answer


def resumed(session: Session, *, at_ms: int, reason: str) -> tuple[AnyRecord, ...]:
    """What a host writes down when it takes a session up, such that it stands on firm ground.

    The agent of a turn that was running is gone, and nobody knows what its tools have done; that
    the turn is over is said once it is reported, or once what it did is published.
    """
    begun = Begun(session.attempt + 1, at_ms, reason if session.is_running else "")
    if not session.is_running:
        return (begun,)
    unanswered = (
        Answered(asked.question, asked.refusal, Who.NOBODY) for asked in session.questions
    )
    repaired = (Repaired(session.turn, session.tools),) if session.tools else ()
    return (begun, *unanswered, *repaired)


def _after(session: Session, record: AnyRecord) -> Session:
    match record:
        case Opened(id, project, draft, runner):
            return replace(session, id=id, project=project, draft=draft, runner=runner)
        case Begun(attempt, _, reason):
            return replace(session, attempt=attempt, reason=reason, is_closed=False)
        case Led(generation):
            return replace(session, generation=max(generation, session.generation))
        case Happened(event=event):
            return _after_event(session, event)
        case TurnBegun() | Repaired() | Revised() | Publishing() | Published() | TurnClosed():
            return _after_step(session, record)
        case _:
            return _after_command(session, record)


def _after_step(
    session: Session, record: TurnBegun | Repaired | Revised | Publishing | Published | TurnClosed
) -> Session:
    match record:
        case TurnBegun(turn, at_ms):
            waiting = tuple(each for each in session.waiting if each.turn != turn)
            begun = replace(session, turn=turn, turn_at_ms=at_ms, waiting=waiting, is_running=True)
            return replace(begun, answers={}, failure=None)
        case Repaired(items=items):
            return replace(session, tools=tuple(_without(session.tools, items)))
        case Revised(revision=revision):
            return replace(session, revision=revision)
        case Publishing(key=key):
            return replace(session, publishing=key, is_done=True)
        case Published():
            return replace(session, publishing=None)
        case TurnClosed(failure=failure):
            rested = replace(session, is_running=False, is_done=False, publishing=None, reason="")
            return replace(rested, questions=(), tools=(), failure=failure)


def _without(tools: tuple[str, ...], items: Collection[str]) -> Iterator[str]:
    return (each for each in tools if each not in items)


def _after_event(session: Session, event: object) -> Session:
    match event:
        case SessionKnown(runner_session):
            return replace(session, runner_session=runner_session)
        case ToolStarted(item):
            return replace(session, tools=(*session.tools, item))
        case ToolEnded(item):
            return replace(session, tools=tuple(_without(session.tools, (item,))))
        case Asked():
            return replace(session, questions=(*session.questions, event))
        case Used():
            return replace(session, used=event)
        case _:
            return session


def _after_command(session: Session, record: AnyRecord) -> Session:
    match record:
        case Prompted(id, _, text, _, how, is_in_place):
            waiting = (*session.waiting, record)
            return replace(_noted(session, Prompt(id, text, how, is_in_place)), waiting=waiting)
        case Steered(id, _, text):
            return _noted(session, Steer(id, text))
        case Answered(question, answer, by, id):
            left = tuple(each for each in session.questions if each.question != question)
            noted = _noted(session, Answer(id, question, answer, by)) if id else session
            return replace(noted, questions=left, answers={**session.answers, question: answer})
        case Aborted(id, turn):
            # What waits for the end of a turn that is not wanted is not wanted either.
            return replace(_noted(session, Abort(id)), aborting=turn, waiting=())
        case Withdrawn(id, turn):
            waiting = tuple(each for each in session.waiting if each.turn != turn)
            return replace(_noted(session, Abort(id)), waiting=waiting)
        case Closed(id):
            return replace(_noted(session, Close(id)), is_closed=True, waiting=())
        case _:
            raise AssertionError(f"{record} is no record")


def _noted(session: Session, command: Command) -> Session:
    known = {**session.commands, command.id: _plain(command)}
    if len(known) > COMMANDS_KEPT:
        del known[next(iter(known))]
    return replace(session, commands=known)


def _plain(command: Command) -> Command:
    """What steers a turn that takes nothing more is a prompt: the same words, the same wish.

    Which turn was to end is not written down where it was not said; an id names one wish to end.
    """
    match command:
        case Steer(id, text):
            return Prompt(id, text)
        case Abort(id):
            return Abort(id)
        case _:
            return command
