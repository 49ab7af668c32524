"""Be at a session again: what was said, what is said now, and what one types is a prompt."""

from __future__ import annotations

import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.look import Look, Tone
from holdfast.cli.core.sessions_page import line_of
from holdfast.cli.core.turn_lines import words_of
from holdfast.cli.exec_run import attach as attach_process
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal
from holdfast.cli.plain_shell import PlainShell
from holdfast.cli.session_attend import INTERRUPTING
from holdfast.cli.session_start import HostStarter
from holdfast.cli.sessions import cells_of
from holdfast.cli.terminal import Terminal, read_input
from holdfast.failures import Failure, boundary, from_wire
from holdfast.host import (
    Awaited,
    Kept,
    Reconnecting,
    Seat,
    Seen,
    Session,
    Trouble,
    Unresponsive,
    fold,
    seated,
)
from holdfast.host.model import Abort, Answer, Answered, Command, Happened, Prompt, Prompted
from holdfast.nouns import printable
from holdfast.runners.model import AnyEvent, Asked

_SILENCE_TOLD: Final = 30.0  # seconds
_LINE_MOST: Final = 1 << 20  # bytes of one prompt that is typed or piped in
_GUIDE: Final = (
    "Type what is to be done; /help lists commands. Ctrl-C interrupts the turn, "
    "Ctrl-D leaves the session."
)


def attach(request: Request, settings: Settings) -> Outcome:
    """Be at a session, if one is named, or at a process."""
    sessions, name = Sessions(settings), request.argument
    if name is None or not sessions.is_named(name):
        return attach_process(request, settings)
    stay = Stay(sessions.find(name), settings, look_for(sys.stdout, request, settings))
    anyio.run(stay.run)
    return stay.outcome()


class Stay:
    """One stay at one session, until the person leaves."""

    def __init__(
        self, session: KeptSession, settings: Settings, look: Look, *, prompt: str | None = None
    ) -> None:
        """Begin with `prompt`, if there is one, before anything that is typed."""
        self._prompt = (prompt or "").encode("utf-8", "surrogateescape")
        self._session, self._settings, self._look = session, settings, look
        self._terminal = Terminal()
        self._is_typed = is_terminal(sys.stdin)
        self._state = Session()
        self._seen = 0
        self._until = Sessions(settings).last(session)  # what was said before we came
        self._commands = PlainShell(session, settings, self._leave)
        self._mark, self._count = f"attach-{secrets.token_hex(6)}", 0
        self._given: set[str] = set()  # what we said that is not written down yet
        self._is_input_over = False
        self._has_quit = False
        self._silences = 0  # half minutes of the present one that were told
        self._failure: Failure | None = None
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Show what was said, then what is; what went wrong is kept, not raised."""
        socket = Sessions(self._settings).socket(self._session)
        start = HostStarter.of(self._session, self._settings)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as self._tasks:
                try:
                    with boundary("attach"):
                        async with seated(socket, start) as seat:
                            self._tasks.start_soon(self._heed, signals, seat)
                            await self._watch(seat)
                except Failure as failure:
                    self._failure = failure
                self._tasks.cancel_scope.cancel()

    def outcome(self) -> Outcome:
        """How it ended, and how to come back."""
        is_on = self._state.is_running or bool(self._state.waiting)
        name = printable(short(self._session))
        hint = f"The turn goes on. Be there again: holdfast attach {name}" if is_on else ""
        return Outcome(failure=self._failure, hint=hint)

    async def _watch(self, seat: Seat) -> None:
        is_listening = False
        while not self._is_over:
            for each in await seat.receive():
                await self._show(each)
            if not is_listening and self._seen >= self._until:
                is_listening = True  # what is typed is about what one has seen
                if self._is_typed:
                    await self._note(_GUIDE)
                for asked in self._state.questions:
                    await self._offer(asked)
                self._tasks.start_soon(self._listen, seat)

    @property
    def _is_over(self) -> bool:
        """Whether nothing more is wanted, and all that was wanted is done."""
        is_busy = self._state.is_running or self._state.waiting or self._given
        return self._is_input_over and self._seen >= self._until and not is_busy

    def _leave(self) -> None:
        """Heed /quit: a person leaves at once; on a pipe it ends the input."""
        self._has_quit = True
        if self._is_typed:
            self._tasks.cancel_scope.cancel()

    async def _show(self, seen: Seen) -> None:
        self._commands.take(seen)
        match seen:
            case Kept(seq, record):
                self._seen, self._state = seq, fold(self._state, (record,))
                is_ours = isinstance(record, Prompted | Answered) and record.command in self._given
                self._given.discard(getattr(record, "command", ""))
                if not (is_ours and self._is_typed):  # the terminal has shown it
                    line = line_of(record, self._look, cells=cells_of(self._look))
                    await self._terminal.say(line)
                if seq > self._until and isinstance(record, Happened):
                    await self._offer(record.event)
            case Reconnecting(delay):
                await self._note(f"! reconnecting… ({delay:g} s)")
            case Awaited(what, seconds):
                await self._tell_silence(what, seconds)
            case Unresponsive():
                await self._note("! The backend is unresponsive.")
            case Trouble(failure) if failure is not None:
                await self._note(f"! {from_wire(failure).user_message}")
            case _:
                pass

    async def _tell_silence(self, what: str, seconds: float) -> None:
        """Say every half a minute that a model or a tool is silent, and for how long."""
        count = int(seconds // _SILENCE_TOLD)
        if count > self._silences:
            await self._note(f"! waiting for {printable(what)}, {seconds:.0f} s")
        self._silences = count

    async def _offer(self, event: AnyEvent) -> None:
        """Say how a question can be answered."""
        if isinstance(event, Asked):
            words = " / ".join(printable(each.word) for each in event.choices)
            await self._note(f"  answer: {words or 'in your words'}")

    async def _note(self, line: str) -> None:
        folded = words_of(line, self._look.width).rstrip("\n")
        await self._terminal.note(self._look.paint(folded, Tone.QUIET))

    async def _listen(self, seat: Seat) -> None:
        """Pass every line on that is typed; who ends the input leaves, or waits for the answer."""
        await self._say(self._prompt, seat)
        rest = b""
        while not self._has_quit and (data := await read_input()):
            *lines, rest = (rest + data).split(b"\n")
            for line in (*lines, rest) if len(rest) > _LINE_MOST else lines:
                await self._say(line, seat)
            rest = b"" if len(rest) > _LINE_MOST else rest
        await self._say(rest, seat)
        if self._is_typed:
            self._tasks.cancel_scope.cancel()
        self._is_input_over = True
        if self._is_over:
            self._tasks.cancel_scope.cancel()

    async def _say(self, line: bytes, seat: Seat) -> None:
        text = line.decode("utf-8", "backslashreplace").strip()
        if not text or self._has_quit:
            return
        words = self._commands.words_in(text, seat)
        if words is None:
            await self._commands.run(text, seat)
            return
        self._count += 1
        name = f"{self._mark}-{self._count}"
        command: Command = Prompt(name, words, self._commands.how(seat))
        if self._state.questions:
            command = Answer(name, self._state.questions[0].question, words)
        self._given.add(name)
        try:
            await seat.command(command)
        except Failure as failure:
            self._given.discard(name)
            await self._note(f"! {failure.user_message}")

    async def _heed(self, signals: AsyncIterator[signal.Signals], seat: Seat) -> None:
        """Ctrl-C interrupts the turn that runs; without one it leaves, and so does the second."""
        interrupted = 0
        async for number in signals:
            turn = self._state.turn if self._state.is_running else interrupted
            if number == signal.SIGTERM or turn == interrupted:
                self._tasks.cancel_scope.cancel()
                return
            interrupted = turn
            self._tasks.start_soon(self._interrupt, turn, seat)

    async def _interrupt(self, turn: int, seat: Seat) -> None:
        await self._note(INTERRUPTING)
        with suppress(Failure):  # it is over already
            await seat.command(Abort(f"{self._mark}-abort-{turn}", turn))
