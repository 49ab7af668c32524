"""Follow one turn of a session to its end, across restarts of the host."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

import anyio
from anyio.abc import TaskGroup

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.app.wiring.host import HostStarter
from holdfast.cli.commands.sessions import cells_of
from holdfast.cli.failures import TurnTooLong
from holdfast.cli.output import is_terminal, json_line
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.turns import LEFT, TurnResult, ending_of, note_of, record_of, words_of
from holdfast.cli.terminal import Terminal
from holdfast.failures import Failure, boundary, from_wire
from holdfast.host import (
    HostSupervisor,
    JournalTrouble,
    Reconnecting,
    RecordReceived,
    SupervisionEvent,
    Unresponsive,
    WaitingSeen,
    supervise_host,
)
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    PromptCommand,
    PromptQueued,
    PromptWithdrawn,
    PublicationRecorded,
    QuestionAnswered,
    RevisionRecorded,
    TurnAborted,
    TurnClosed,
)
from holdfast.nouns import printable, prose
from holdfast.runners.model import (
    MemoryRecorded,
    QuestionAsked,
    TextCompleted,
    TurnEnding,
    UsageUpdated,
)

STATUSES: Final = {TurnEnding.COMPLETED: 0, TurnEnding.INTERRUPTED: 128 + signal.SIGINT, LEFT: 1}
"""Exit statuses of turns without a failure, which has a status of its own; others are 1."""

INTERRUPTING: Final = "Interrupting the turn; Ctrl-C again leaves at once."
_AGAIN: Final = 0.1
_SILENCE_TOLD: Final = 30.0  # seconds between two words about the same silence
_ABORT_LONGEST: Final = 20.0  # that a turn which is to end is waited for


class TurnOrder(NamedTuple):
    """What is to be done, how, whether in place, and within how many seconds."""

    prompt: str
    how: dict[str, str]
    is_in_place: bool = False
    limit: float | None = None


class Attendance:
    """Follows one turn to its end; a failure is stored, not raised."""

    def __init__(self, session: KeptSession, settings: Settings, look: Look | None) -> None:
        """Show it to a person with this look, or without one as records to a program."""
        self.result = TurnResult()
        self.failure: Failure | None = None
        self.signal: int | None = None  # what made the turn end, or us leave
        self._session, self._settings, self._look = session, settings, look
        self._terminal = Terminal()
        self._command = f"ask-{secrets.token_hex(8)}"
        self._seat: HostSupervisor | None = None  # once the prompt is taken
        self._questions: set[str] = set()  # of the turn
        self._is_stopping = False
        self._silences = 0  # half minutes of the current silence that were reported
        self._tasks: TaskGroup

    async def run(self, order: TurnOrder) -> None:
        """Ask, and stay until the turn is over."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._handle_signals, signals)
                try:
                    with boundary("ask"):
                        await self._attend(order)
                except Failure as failure:
                    self.failure = self.failure or failure
                self._tasks.cancel_scope.cancel()

    async def _attend(self, order: TurnOrder) -> None:
        sessions = Sessions(self._settings)
        start = HostStarter.of(self._session, self._settings)
        seen = sessions.last(self._session)
        async with supervise_host(sessions.socket(self._session), start, after=seen) as seat:
            prompt = PromptCommand(self._command, order.prompt, order.how, order.is_in_place)
            await seat.command(prompt)
            self._seat = seat
            if self._look is not None and is_terminal(sys.stderr):
                await self._note("Ctrl-C interrupts the turn.")
            self._tasks.start_soon(self._limit, order.limit)
            while True:
                for each in await seat.receive():
                    await self._take(each, seat)
                    if isinstance(each, RecordReceived) and self._is_end(each.record):
                        return

    def _is_end(self, record: AnyRecord) -> bool:
        is_closed = isinstance(record, TurnClosed) and record.turn == self.result.turn
        return is_closed or self._is_dropped(record)

    def _is_dropped(self, record: AnyRecord) -> bool:
        """Whether ours will not begin: it was taken back, alone or with the turn it waits for."""
        match record, self.result.turn:
            case PromptWithdrawn(turn=turn), ours:
                return turn == ours
            case TurnAborted(turn=turn), int(ours):
                return turn < ours
            case _:
                return False

    async def _take(self, seen: SupervisionEvent, seat: HostSupervisor) -> None:
        match seen:
            case RecordReceived(seq, record):
                self._learn(record)
                if isinstance(record, AttemptStarted) or self._is_of_turn(record):
                    await self._show(seq, record)
                if isinstance(record, EventRecorded) and isinstance(record.event, QuestionAsked):
                    self._questions.add(record.event.question)
                    self._tasks.start_soon(self._answer, record.event, seat)
            case Reconnecting(delay):
                await self._note(f"! reconnecting… ({delay:g} s)")
            case Unresponsive():
                await self._note("! The backend is unresponsive. Ctrl-C leaves it.")
            case WaitingSeen(what, seconds):
                await self._tell_silence(what, seconds)
            case JournalTrouble(failure) if failure is not None:
                await self._note(f"! {from_wire(failure).user_message}")
            case _:
                pass

    async def _tell_silence(self, what: str, seconds: float) -> None:
        """Say every half a minute that a model or a tool is silent, and for how long."""
        count = int(seconds // _SILENCE_TOLD)
        if count > self._silences:
            await self._note(f"… waiting for {printable(what)}, {seconds:.0f} s")
        self._silences = count

    def _is_of_turn(self, record: AnyRecord) -> bool:
        if isinstance(record, QuestionAnswered):
            return record.question in self._questions
        return self.result.turn is not None and getattr(record, "turn", 0) == self.result.turn

    def _learn(self, record: AnyRecord) -> None:
        result = self.result
        match record:
            case PromptQueued(command, turn) if command == self._command:
                result.turn = turn
            case TurnAborted() | PromptWithdrawn() if self._is_dropped(record):
                result.status = TurnEnding.INTERRUPTED
            case _ if not self._is_of_turn(record):
                pass
            case EventRecorded(event=TextCompleted(text=text, continues=continues)):
                result.text = result.text + text if continues else text
            case EventRecorded(event=UsageUpdated() as used):
                result.used = used
            case RevisionRecorded(revision=revision, checkpoint=checkpoint):
                result.revision, result.checkpoint = revision, checkpoint
            case PublicationRecorded(checkpoint=checkpoint):
                result.undo = checkpoint
            case TurnClosed(ending=ending, failure=failure, report=report):
                result.status, result.report = ending.value, report or None
                if failure is not None and self.failure is None:
                    self.failure = from_wire(failure)
            case _:
                pass

    async def _show(self, seq: int, record: AnyRecord) -> None:
        if isinstance(record, EventRecorded) and isinstance(record.event, MemoryRecorded):
            return  # that is between the runner and its memory
        if self._look is None:
            await self._terminal.say(json_line(record_of(seq, record)))
        elif isinstance(record, EventRecorded) and isinstance(record.event, TextCompleted):
            await self._terminal.say(words_of(record.event.text, cells_of(self._look)))
        elif (
            isinstance(record, EventRecorded)
            and isinstance(record.event, QuestionAsked)
            and self._can_ask
        ):
            pass  # the person is asked in a moment
        elif note := note_of(record, self._look.width) or self._ending(record):
            await self._note(note)

    @property
    def _can_ask(self) -> bool:
        return self._look is not None and self._terminal.can_ask

    def _ending(self, record: AnyRecord) -> str:
        """The line for the end of the turn; empty with a failure, which is reported separately."""
        is_told = isinstance(record, TurnClosed) and record.failure is not None
        return "" if is_told else ending_of(record)

    async def _note(self, line: str) -> None:
        quiet = line if self._look is None else self._look.paint(line, Tone.QUIET)
        await self._terminal.note(quiet)

    async def _answer(self, asked: QuestionAsked, seat: HostSupervisor) -> None:
        """Ask the user on the terminal; without one refuse and print a note."""
        answer: str | None = None
        by = AnswerSource.UNATTENDED
        words = [choice.word for choice in asked.choices]
        if self._can_ask:
            by = AnswerSource.NOBODY
            page = f"{prose(asked.title)}\n{prose(asked.detail)}\n".replace("\n\n", "\n")
            prompt = f"{' / '.join(map(printable, words)) or 'your answer'}: "
            answer = await self._terminal.ask(
                page,
                prompt,
                lambda line: line.strip() if not words or line.strip() in words else None,
                again=prompt,
            )
        if answer is None:
            self.result.refusals += 1
            if self._look is None:  # a person reads the record of it
                await self._note(
                    f"? Refused, because no terminal is attached: {printable(asked.title)}"
                )
        else:
            by = AnswerSource.PERSON
        given = asked.refusal if answer is None else answer
        name = f"{self._command}-{asked.question}"
        with suppress(Failure):  # it was answered elsewhere, or the turn is over
            await seat.command(AnswerCommand(name, asked.question, given, by))

    async def _handle_signals(self, signals: AsyncIterator[signal.Signals]) -> None:
        """The first signal interrupts the turn; the second leaves it."""
        async for number in signals:
            self.signal = number
            if self._is_stopping or self._seat is None:
                self._tasks.cancel_scope.cancel()
            else:
                self._tasks.start_soon(self._terminal.note, INTERRUPTING)
                self._stop()

    async def _limit(self, limit: float | None) -> None:
        if limit is None:
            return
        await anyio.sleep(limit)
        self.failure = TurnTooLong(limit=limit)
        self._stop()

    def _stop(self) -> None:
        """Interrupt our turn only, and leave if it does not end in time."""
        self._is_stopping = True
        self._terminal.dismiss()
        self._tasks.start_soon(self._abort)

    async def _abort(self) -> None:
        assert self._seat is not None, "nothing is to end before it was asked for"
        with anyio.move_on_after(_ABORT_LONGEST):
            for number in count(1):
                with suppress(Failure):  # it has not begun, or it is over
                    name = f"{self._command}-abort-{number}"
                    if self.result.turn is not None:  # by what we have heard
                        await self._seat.command(AbortCommand(name, self.result.turn))
                        break
                await anyio.sleep(_AGAIN)
            await anyio.sleep_forever()  # until the turn has ended, and we with it
        self._tasks.cancel_scope.cancel()
