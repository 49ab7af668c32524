"""`holdfast attach` and `chat --plain`: print a session, follow it, and send typed lines to it.

Slash commands for plain lines: `--plain`, TERM=dumb, a pipe, `holdfast attach`.

The commands are those of the terminal (`terminal.Meaning`). What they show is printed as lines
without escape sequences; commands of ours run as child processes, one after another.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.host import HostStarter
from holdfast.cli.commands.exec import attach as attach_process
from holdfast.cli.commands.sessions import cells_of
from holdfast.cli.commands.turn import INTERRUPTING, STATUSES
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal, look_for
from holdfast.cli.render.sessions import line_of
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.turns import words_of
from holdfast.cli.terminal import Terminal, read_input
from holdfast.failures import Failure, boundary, from_wire
from holdfast.host import (
    HostSupervisor,
    JournalTrouble,
    Reconnecting,
    RecordReceived,
    SessionState,
    SupervisionEvent,
    Unresponsive,
    WaitingSeen,
    fold,
    supervise_host,
)
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnyRecord,
    EventRecorded,
    HostCommand,
    PromptCommand,
    QuestionAnswered,
    TurnClosed,
)
from holdfast.host.model import PromptQueued as ModelPrompted
from holdfast.nouns import printable
from holdfast.runners.model import AnyEvent, QuestionAsked
from holdfast.terminal import Meaning, Setting, Transcript, draw
from holdfast.terminal.model import Block, Prompted, Style


class PlainShell:
    """Runs the slash commands of one stay at a session."""

    def __init__(self, session: KeptSession, settings: Settings, leave: Callable[[], None]) -> None:
        self._session, self._settings, self._leave = session, settings, leave
        self._terminal = Terminal()
        self._transcript = Transcript()
        self._shown: list[str] = []
        self._folded: Block | None = None
        self._meaning: Meaning | None = None
        self._tasks: TaskGroup

    def take(self, seen: SupervisionEvent) -> None:
        """Learn what happened in the session: commands are about it."""
        for block in self._transcript.take(seen):
            self._folded = block

    def words_in(self, line: str, seat: HostSupervisor) -> str | None:
        """The words for the agent in a line; None if the line is a command."""
        return self._of(seat).words_in(line)

    async def run(self, line: str, seat: HostSupervisor) -> None:
        """Do what a line with a slash asks for; return when it is done."""
        meaning = self._of(seat)
        async with anyio.create_task_group() as self._tasks:
            meaning.begin(self._tasks)
            meaning.take(line)
        shown, self._shown = self._shown, []
        for text in shown:
            await self._terminal.say(text)

    def how(self, seat: HostSupervisor) -> dict[str, str]:
        """How the next prompt is to be taken, as /model and /branch said."""
        return self._of(seat).how()

    def tell(self, *blocks: Block) -> None:
        """Show something that is not part of the session."""
        seen = [each for each in blocks if not isinstance(each, Prompted)]  # it was just typed
        self._shown.append(draw(seen, _style()))

    def run_aside(self, argv: Sequence[str], then: Callable[[], object] | None = None) -> None:
        """Run a command of ours."""
        self._tasks.start_soon(self._run, tuple(argv), then)

    def prefill(self, text: str) -> None:
        """Show a line that the person would go on with: here it has to be typed."""
        if text.strip():
            self._shown.append(f"{text}\n")

    def give_back(self, text: str) -> None:
        """A line that could not be sent is still to be seen above."""

    def unfold(self, block: Block | None = None) -> None:
        """Show all of something, or of what was shown last."""
        block = block or self._folded
        if block is not None:
            self._shown.append(draw([block], _style(), is_whole=True))

    def leave(self) -> None:
        """Leave the session."""
        self._leave()

    def _of(self, seat: HostSupervisor) -> Meaning:
        if self._meaning is None:
            setting = Setting(
                draft=self._session.draft,
                runner=self._session.runner,
                root=Path(self._session.project),
                history=self._settings.state / "history",
                draw=draw,
                options=self._options,
                how={},
                is_coloured=False,
            )
            self._meaning = Meaning(seat, self._transcript, self, setting)
        return self._meaning

    def _options(self) -> Sequence[str]:
        from holdfast.app.wiring.host_process import LazyRunner

        return LazyRunner(self._session, self._settings).options

    async def _run(self, argv: tuple[str, ...], then: Callable[[], object] | None) -> None:
        shown, self._shown = self._shown, []
        for text in shown:
            await self._terminal.say(text)
        words = (sys.executable, "-P", "-m", "holdfast.cli.main", *argv)
        # On a pipe the rest of the input is for the session, not for the command.
        stdin = None if is_terminal(sys.stdin) else subprocess.DEVNULL
        status = await anyio.to_thread.run_sync(
            lambda: (
                subprocess.run(
                    words,
                    cwd=self._session.project,
                    env=environment() | {"NO_COLOR": "1", "TERM": "dumb"},
                    stdin=stdin,
                    check=False,
                ).returncode
            )
        )
        if then is not None and status == 0:
            then()


def _style() -> Style:
    width = shutil.get_terminal_size().columns
    return Style(width, is_coloured=False, is_plain=True)


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
        self._state = SessionState()
        self._seen = 0
        self._until = Sessions(settings).last(session)  # the last record from before we attached
        self._commands = PlainShell(session, settings, self._leave)
        self._mark, self._count = f"attach-{secrets.token_hex(6)}", 0
        self._given: set[str] = set()  # what we said that is not written down yet
        self._is_input_over = False
        self._has_quit = False
        self._silences = 0  # half minutes of the current silence that were reported
        self._failure: Failure | None = None
        self._status = 0  # of the last turn that did not complete, where a program reads it
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Print the conversation and follow it; a failure is stored, not raised."""
        socket = Sessions(self._settings).socket(self._session)
        start = HostStarter.of(self._session, self._settings)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as self._tasks:
                try:
                    with boundary("attach"):
                        async with supervise_host(socket, start) as seat:
                            self._tasks.start_soon(self._heed, signals, seat)
                            await self._watch(seat)
                except Failure as failure:
                    self._failure = failure
                self._tasks.cancel_scope.cancel()

    def outcome(self) -> Outcome:
        """How it ended, and how to come back."""
        is_on = self._state.is_running or bool(self._state.waiting)
        name = printable(short(self._session))
        hint = f"The turn continues. Attach with: holdfast attach {name}" if is_on else ""
        # At a terminal the person has seen how turns ended; a script has only the status.
        status = 0 if self._is_typed or self._failure is not None else self._status
        return Outcome(status=status, failure=self._failure, hint=hint)

    async def _watch(self, seat: HostSupervisor) -> None:
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
        """Handle /quit: leave at once on a terminal; on a pipe it ends the input."""
        self._has_quit = True
        if self._is_typed:
            self._tasks.cancel_scope.cancel()

    async def _show(self, seen: SupervisionEvent) -> None:
        self._commands.take(seen)
        match seen:
            case RecordReceived(seq, record):
                self._seen, self._state = seq, fold(self._state, (record,))
                is_ours = (
                    isinstance(record, ModelPrompted | QuestionAnswered)
                    and record.command in self._given
                )
                self._given.discard(getattr(record, "command", ""))
                if not (is_ours and self._is_typed):  # the terminal has shown it
                    line = line_of(record, self._look, cells=cells_of(self._look))
                    await self._terminal.say(line)
                if seq > self._until:
                    self._note_ending(record)
                    if isinstance(record, EventRecorded):
                        await self._offer(record.event)
            case Reconnecting(delay):
                await self._note(f"! reconnecting… ({delay:g} s)")
            case WaitingSeen(what, seconds):
                await self._tell_silence(what, seconds)
            case Unresponsive():
                await self._note("! The backend is unresponsive.")
            case JournalTrouble(failure) if failure is not None:
                await self._note(f"! {from_wire(failure).user_message}")
            case _:
                pass

    def _note_ending(self, record: AnyRecord) -> None:
        match record:
            case TurnClosed(failure=dict(failure)):
                self._status = from_wire(failure).kind.exit_status
            case TurnClosed(ending=ending):
                self._status = STATUSES.get(ending, 1) or self._status
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
        if isinstance(event, QuestionAsked):
            words = " / ".join(printable(each.word) for each in event.choices)
            await self._note(f"  answer: {words or 'in your words'}")

    async def _note(self, line: str) -> None:
        folded = words_of(line, self._look.width).rstrip("\n")
        await self._terminal.note(self._look.paint(folded, Tone.QUIET))

    async def _listen(self, seat: HostSupervisor) -> None:
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

    async def _say(self, line: bytes, seat: HostSupervisor) -> None:
        text = line.decode("utf-8", "backslashreplace").strip()
        if not text or self._has_quit:
            return
        words = self._commands.words_in(text, seat)
        if words is None:
            await self._commands.run(text, seat)
            return
        self._count += 1
        name = f"{self._mark}-{self._count}"
        command: HostCommand = PromptCommand(name, words, self._commands.how(seat))
        if self._state.questions:
            command = AnswerCommand(name, self._state.questions[0].question, words)
        self._given.add(name)
        try:
            await seat.command(command)
        except Failure as failure:
            self._given.discard(name)
            self._status = failure.kind.exit_status
            await self._note(f"! {failure.user_message}")

    async def _heed(self, signals: AsyncIterator[signal.Signals], seat: HostSupervisor) -> None:
        """Ctrl-C interrupts the turn that runs; without one it leaves, and so does the second."""
        interrupted = 0
        async for number in signals:
            turn = self._state.turn if self._state.is_running else interrupted
            if number == signal.SIGTERM or turn == interrupted:
                self._tasks.cancel_scope.cancel()
                return
            interrupted = turn
            self._tasks.start_soon(self._interrupt, turn, seat)

    async def _interrupt(self, turn: int, seat: HostSupervisor) -> None:
        await self._note(INTERRUPTING)
        with suppress(Failure):  # it is over already
            await seat.command(AbortCommand(f"{self._mark}-abort-{turn}", turn))
