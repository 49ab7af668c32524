"""Connect the screen with the host: records in, commands out, across reconnections."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.failures import to_wire
from holdfast.host import HostSupervisor, RecordReceived
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import EventRecorded, QuestionAnswered, TurnClosed
from holdfast.runners.model import QuestionAsked
from holdfast.terminal.commands import Meaning
from holdfast.terminal.error_view import trouble_of
from holdfast.terminal.live_view import live, status_line
from holdfast.terminal.model import Block, Card, Note, Style, Trouble
from holdfast.terminal.notifications import Signals
from holdfast.terminal.ports import Commands, Fragments, Setting
from holdfast.terminal.screen import Screen
from holdfast.terminal.transcript import Transcript

_TICK: Final = 0.03  # seconds that what is over is gathered for before it is written
_SETTLED: Final = 0.3  # seconds after which the terminal has shown what was drawn first
_TWICE: Final = 2.0  # seconds within which the second Ctrl-C leaves


class Talk:
    """One terminal client of one session."""

    def __init__(
        self, seat: HostSupervisor, setting: Setting, commands: Commands, until: int
    ) -> None:
        """Records up to `until` are history and cause no notifications."""
        self._seat, self._setting, self._commands = seat, setting, commands
        self._until = until
        self._transcript = Transcript()
        self._screen = Screen(
            self, history=setting.history, root=setting.root, is_coloured=setting.is_coloured
        )
        self._meaning = Meaning(seat, self._transcript, self, setting)
        self._signals = Signals(setting.notify, setting.notify_command)
        self._over: list[Block] = []  # and not written yet
        self._last: Block = Note("")  # that was written; what comes first stands apart
        self._folded: Block | None = None
        self._put_by = ""  # what was being typed when the agent asked
        self._stirred = anyio.Event()
        self._interrupted = -_TWICE
        self._tasks: TaskGroup

    async def run(self, prompt: str | None = None) -> None:
        """Run until the user leaves."""
        async with anyio.create_task_group() as self._tasks:
            self._meaning.begin(self._tasks)
            self._tasks.start_soon(self._listen)
            self._tasks.start_soon(self._write)
            self._tasks.start_soon(self._get_ready)
            if prompt:
                self._meaning.say(prompt)
            self._signals.begin(f"holdfast · {self._setting.root.name}")
            try:
                await self._screen.run()
            finally:
                self._signals.end()
            self._tasks.cancel_scope.cancel()

    def shown(self, rows: int, columns: int) -> Fragments:
        """The live lines, at most `rows`."""
        return live(self._transcript, rows, columns)

    def status(self, columns: int) -> str:
        """The status line."""
        return status_line(self._transcript, self._setting.runner, self._setting.draft, columns)

    def enter(self, text: str) -> bool:
        """Execute a typed line; return whether the input buffer may be cleared."""
        return self._meaning.take(text)

    def choose(self, number: int) -> bool:
        """Answer the open question by a choice number, from 1; return whether one was open."""
        return self._meaning.choose(number)

    def interrupt(self, typed: str) -> bool:
        """Handle Ctrl-C: interrupt the turn, else clear the input; leave on the second."""
        now = anyio.current_time()
        is_second, self._interrupted = now - self._interrupted < _TWICE, now
        if is_second and (self._transcript.is_busy or not typed):
            self.leave()
        elif self._transcript.is_busy:
            self._meaning.abort()
            return False
        elif not typed:
            self.tell(Note("Ctrl-C again leaves; the session stays."))
        return bool(typed)

    def leave(self) -> None:
        """Leave; a running turn continues on the host."""
        self._screen.end()

    def go_back(self) -> None:
        """List earlier prompts to branch from."""
        self._meaning.take("/branch")

    def unfold(self, block: Block | None = None) -> None:
        """Show a block in full, by default the last folded one."""
        block = block or self._folded
        if block is None:
            self.tell(Note("Nothing is folded."))
        else:
            self._tasks.start_soon(self._show_whole, block)

    def tell(self, *blocks: Block) -> None:
        """Show lines that are not part of the session."""
        self._over += blocks
        self._stirred.set()

    def run_aside(self, argv: Sequence[str], then: Callable[[], object] | None = None) -> None:
        """Run a holdfast command in the foreground; call `then` if its exit status is 0."""
        self._tasks.start_soon(self._run, argv, then)

    def prefill(self, text: str) -> None:
        """Put text into the input buffer."""
        self._screen.buffer.insert_text(text)

    def give_back(self, text: str) -> None:
        """Put a line that could not be sent before the current input."""
        if text:
            buffer = self._screen.buffer
            since = buffer.text
            buffer.reset()
            buffer.insert_text(f"{text}\n{since}" if since else text)

    async def _run(self, argv: Sequence[str], then: Callable[[], object] | None) -> None:
        await self._flush()
        status = await self._screen.aside(lambda: self._commands.run(argv))
        self._put_back()
        if then is not None and status == 0:
            then()

    async def _show_whole(self, block: Block) -> None:
        await self._flush()
        self._over.append(block)
        await self._flush(is_whole=True)

    async def _listen(self) -> None:
        while True:
            try:
                for each in await self._seat.receive():
                    blocks = self._transcript.take(each)
                    self._over += blocks
                    if isinstance(each, RecordReceived):
                        self._notice(each, blocks)
            except (HostGone, SessionClosed) as gone:
                trouble, self._transcript.is_reconnecting = trouble_of(to_wire(gone)), False
                self._meaning.trouble, self._meaning.is_gone = trouble, True
                self.tell(trouble)
            self._stirred.set()

    def _notice(self, kept: RecordReceived, blocks: Sequence[Block]) -> None:
        """Store blocks that can be unfolded or retried, and notify the user."""
        for block in blocks:
            if isinstance(block, Card | Trouble):
                self._folded = block
            self._meaning.trouble = block if isinstance(block, Trouble) else None
        if kept.seq <= self._until:
            return
        match kept.record:
            case EventRecorded(event=QuestionAsked(title=title)):
                self._put_aside()
                self._tasks.start_soon(self._call, f"needs you: {title}")
            case QuestionAnswered():
                self._put_back()
            case TurnClosed():
                self._put_back()
                if self._meaning.is_asked:
                    self._put_aside()
                self._tasks.start_soon(self._call, "done")
            case _:
                pass

    async def _call(self, text: str) -> None:
        problem = await self._signals.call(text)
        if problem:
            self.tell(Note(problem, is_warning=True))

    def _put_aside(self) -> None:
        """Save and clear the input when a question appears: it was not meant as the answer."""
        if self._screen.buffer.text and not self._put_by:
            self._put_by = self._screen.buffer.text
            self._screen.buffer.reset()

    def _put_back(self) -> None:
        if self._put_by and not self._screen.buffer.text:
            self.prefill(self._put_by)
            self._put_by = ""

    async def _get_ready(self) -> None:
        """Import the renderer in the background, once the input line is shown."""
        await self._screen.is_drawn.wait()
        await anyio.sleep(_SETTLED)
        self._drawn(())

    async def _write(self) -> None:
        """Write finished blocks to the scrollback, batched for a moment."""
        while True:
            await self._stirred.wait()
            await anyio.sleep(_TICK)
            self._stirred = anyio.Event()
            await self._flush()
            self._screen.redraw()

    async def _flush(self, *, is_whole: bool = False) -> None:
        blocks, self._over = self._over, []
        if blocks:
            drawn = self._drawn(blocks, is_whole=is_whole)
            self._last = blocks[-1]
            await self._screen.above(drawn)

    def _drawn(self, blocks: Sequence[Block], *, is_whole: bool = False) -> str:
        columns = shutil.get_terminal_size().columns
        style = Style(columns, self._setting.is_coloured, self._setting.is_light)
        return self._setting.draw(blocks, style, after=self._last, is_whole=is_whole)
