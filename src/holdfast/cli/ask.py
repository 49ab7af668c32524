"""Have an agent take one turn in a draft, and watch it; whatever dies meanwhile, it goes on."""

from __future__ import annotations

import secrets
import signal
import sys
from contextlib import suppress
from functools import partial

import anyio

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.cli.codex_views import json_line
from holdfast.cli.commands import Request
from holdfast.cli.core.printable import printable, prose
from holdfast.cli.core.turn_lines import note_of, record_of, result_of
from holdfast.cli.failures import TurnTooLong, UsageWrong
from holdfast.cli.host import RUNNERS
from holdfast.cli.model import Outcome
from holdfast.cli.session_start import start_host
from holdfast.cli.terminal import Terminal
from holdfast.cli.workbench_project import at_work
from holdfast.failures import Failure, from_wire
from holdfast.host import Kept, Reconnecting, Seat, Seen, Trouble, seated
from holdfast.host.model import Abort, Answer, Happened, Prompt, TurnClosed
from holdfast.runners.failures import RunnerUnknown
from holdfast.runners.model import Asked, Ending, Said
from holdfast.workbench import open_draft

_STATUSES = {Ending.COMPLETED: 0, Ending.INTERRUPTED: 128 + signal.SIGINT, Ending.FAILED: 1}


def ask(request: Request, settings: Settings) -> Outcome:
    """Have one turn taken, in a session and a draft of its own, and say how it ended."""
    session, prompt = _made(request, settings)
    attendance = Attendance(session, request, settings)
    limit = _limit(request)
    anyio.run(attendance.run, prompt, limit)
    return attendance.outcome()


def _made(request: Request, settings: Settings) -> tuple[KeptSession, str]:
    prompt = request.argument
    if not prompt:
        raise UsageWrong(problem="say what is to be done", read_on="holdfast ask --help")
    if prompt == "-":
        prompt = sys.stdin.read()
    sessions, named = Sessions(settings), request.value("--session")
    if named is not None:
        return sessions.find(named), prompt
    runner = request.value("--runner") or RUNNERS[0]
    if runner not in RUNNERS:
        raise RunnerUnknown(runner=runner, known=", ".join(RUNNERS))
    options = {
        name: value
        for name in ("scenario", "model")
        if (value := request.value(f"--{name}")) is not None
    }
    with at_work(request, settings) as project:
        draft = request.value("--draft") or open_draft(project.workbench).id
        where = str(project.workbench.project)
    return sessions.make(where, draft, runner, title=prompt[:80], options=options), prompt


def _limit(request: Request) -> float | None:
    given = request.value("--timeout")
    if given is None:
        return None
    try:
        return float(given)
    except ValueError as error:
        problem = f"--timeout: {given} is no number of seconds"
        raise UsageWrong(problem=problem, read_on="holdfast ask --help") from error


class Attendance:
    """One turn of a session, watched to its end."""

    def __init__(self, session: KeptSession, request: Request, settings: Settings) -> None:
        self._session = session
        self._is_json = request.is_json
        self._settings = settings
        self._terminal = Terminal()
        self._closed: TurnClosed | None = None
        self._failure: Failure | None = None
        self._text = ""
        self._command = f"ask-{secrets.token_hex(8)}"

    async def run(self, prompt: str, limit: float | None) -> None:
        """Ask, and stay until the turn is over; what went wrong is kept, not raised."""
        sessions = Sessions(self._settings)
        start = partial(start_host, self._session, self._settings)
        try:
            async with seated(sessions.socket(self._session), start) as seat:
                first = await seat.command(Prompt(self._command, prompt))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._heed_signals, seat)
                    with anyio.move_on_after(limit) as late:
                        await self._watch(seat, first)
                    if late.cancelled_caught:
                        assert limit is not None
                        self._failure = TurnTooLong(limit=limit)
                        await seat.command(Abort(f"{self._command}-late"))
                        await self._watch(seat, first)
                    tasks.cancel_scope.cancel()
        except Failure as failure:
            self._failure = self._failure or failure

    def outcome(self) -> Outcome:
        """How it ended."""
        failure = self._failure
        if failure is None and self._closed is not None and self._closed.failure is not None:
            failure = from_wire(self._closed.failure)
        status = 0 if self._closed is None else _STATUSES[self._closed.ending]
        if failure is not None:
            status = failure.kind.exit_status
        if self._is_json:
            record = result_of(self._session.id, self._session.draft, self._closed, self._text)
            return Outcome(status=status, answer=json_line(record), failure=failure)
        hint = f"(Session {printable(self._session.id)}; draft {printable(self._session.draft)}.)"
        return Outcome(status=status, failure=failure, hint=hint)

    async def _watch(self, seat: Seat, first: int) -> None:
        while self._closed is None:
            for each in await seat.receive():
                await self._take(each, seat, first)

    async def _take(self, seen: Seen, seat: Seat, first: int) -> None:
        match seen:
            case Kept(seq, record) if seq >= first:
                await self._show(seq, seen)
                if isinstance(record, Happened) and isinstance(record.event, Asked):
                    await self._answer(record.event, seat)
                if isinstance(record, TurnClosed):
                    self._closed = record
            case Reconnecting(delay):
                await self._terminal.note(f"! reconnecting… ({delay:g} s)")
            case Trouble(failure) if failure is not None:
                await self._terminal.note(f"! {from_wire(failure).user_message}")
            case _:
                pass

    async def _show(self, seq: int, kept: Kept) -> None:
        if isinstance(kept.record, Happened) and isinstance(kept.record.event, Said):
            self._text = kept.record.event.text
            if not self._is_json:
                await self._terminal.say(f"{prose(self._text)}\n")
        if self._is_json:
            await self._terminal.say(json_line(record_of(seq, kept.record)))
        elif note := note_of(kept.record):
            await self._terminal.note(note)

    async def _answer(self, asked: Asked, seat: Seat) -> None:
        """Ask the person, if there is one; nobody is a refusal."""
        answer: str | None = None
        words = [choice.word for choice in asked.choices]
        if self._terminal.can_ask:
            page = f"{prose(asked.title)}\n{prose(asked.detail)}\n".replace("\n\n", "\n")
            prompt = f"{' / '.join(map(printable, words)) or 'your answer'}: "
            answer = await self._terminal.ask(
                page, prompt, lambda line: line if not words or line in words else None
            )
        with suppress(Failure):  # it was answered elsewhere, or the turn is over
            given = asked.refusal if answer is None else answer
            await seat.command(Answer(f"{self._command}-{asked.question}", asked.question, given))

    async def _heed_signals(self, seat: Seat) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                await self._terminal.note("Interrupting the turn; Ctrl-C again leaves at once.")
                with suppress(Failure):
                    await seat.command(Abort(f"{self._command}-abort"))
                break
            async for number in signals:
                raise SystemExit(128 + number)
