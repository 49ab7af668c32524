"""Let a person talk with an agent in a terminal, whatever dies behind it."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from holdfast.failures import Failure, to_wire
from holdfast.host import Kept, Seat
from holdfast.host.failures import HostGone
from holdfast.host.model import (
    Abort,
    Answer,
    Answered,
    Command,
    Happened,
    Prompt,
    Steer,
    TurnClosed,
)
from holdfast.runners.model import Asked
from holdfast.terminal.core.slash import Deed, Do, Run, Say, Wrong, help_lines, meaning_of
from holdfast.terminal.core.status import cost_lines
from holdfast.terminal.core.surface import trouble_of
from holdfast.terminal.drawing import Style, draw
from holdfast.terminal.live import live, status_line
from holdfast.terminal.model import Block, Card, Note, Trouble
from holdfast.terminal.ports import Commands, Fragments
from holdfast.terminal.screen import Screen
from holdfast.terminal.signalling import Signals
from holdfast.terminal.transcript import Transcript

_TICK: Final = 0.03  # seconds that what is over is gathered for before it is written
_OTHER_RUNNER: Final = "An agent is chosen when a session begins: holdfast --runner NAME"
_TWICE: Final = 2.0  # seconds within which the second Ctrl-C leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a conversation is about, and how it is shown."""

    session: str  # its name for a person
    draft: str
    runner: str
    root: Path  # where names of files are completed
    history: Path
    is_coloured: bool = True
    is_light: bool = False


class Talk:
    """One stay of a person at one session."""

    def __init__(self, seat: Seat, setting: Setting, commands: Commands, until: int) -> None:
        """Show everything up to the record `until` at once, as what was said before."""
        self._seat, self._setting, self._commands = seat, setting, commands
        self._transcript = Transcript()
        self._until = until
        self._screen = Screen(
            self, history=setting.history, root=setting.root, is_coloured=setting.is_coloured
        )
        self._signals = Signals()
        self._over: list[Block] = []
        self._last: Block | None = None  # that was written
        self._folded: Block | None = None
        self._put_by = ""  # what was being typed when the agent asked
        self._trouble: Trouble | None = None
        self._stirred = anyio.Event()
        self._mark, self._count = f"talk-{secrets.token_hex(6)}", 0
        self._interrupted = -_TWICE
        self._how: dict[str, str] = {}
        self._prompts: list[str] = []
        self._tasks: TaskGroup

    async def run(self, prompt: str | None = None) -> None:
        """Stay until the person leaves."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._listen)
            self._tasks.start_soon(self._write)
            if prompt:
                self._say(prompt)
            self._signals.begin(f"holdfast · {self._setting.root.name}")
            try:
                await self._screen.run()
            finally:
                self._signals.end()
            self._tasks.cancel_scope.cancel()

    # What the screen asks and tells.

    def shown(self, rows: int, columns: int) -> Fragments:
        """What goes on now, in at most so many rows."""
        return live(self._transcript, rows, columns)

    def status(self, columns: int) -> str:
        """Where it stands, in a line."""
        return status_line(self._transcript, self._setting.runner, self._setting.draft, columns)

    def enter(self, text: str) -> bool:
        """Take a line that was typed; say whether it may be forgotten."""
        if not text.strip():
            return self._take_offer()
        asked = self._transcript.question
        if asked is not None and not text.startswith("/"):
            return self._answer(asked, text.strip())
        self._mean(text)
        return True

    def choose(self, number: int) -> bool:
        """Take a choice by its number, from 1 on; say whether there was one to take."""
        asked = self._transcript.question
        if asked is None or not 1 <= number <= len(asked.choices):
            return False
        return self._answer(asked, asked.choices[number - 1].word)

    def interrupt(self, typed: str) -> bool:
        """End the turn; without one clear what was typed; twice, leave."""
        now = anyio.current_time()
        is_second, self._interrupted = now - self._interrupted < _TWICE, now
        if is_second:
            self.leave()
        elif self._transcript.is_busy:
            self._command(Abort(self._name()))
        elif not typed:
            self._tell(Note("Ctrl-C again leaves; the session stays."))
        return bool(typed)

    def leave(self) -> None:
        """Leave; what runs goes on."""
        self._screen.end()

    def go_back(self) -> None:
        """Offer the earlier prompts to go back to."""
        self._branch("")

    def unfold(self) -> None:
        """Show all of what was folded last."""
        if self._folded is None:
            self._tell(Note("Nothing is folded."))
        else:
            self._over.append(self._folded)
            self._tell(None, is_whole=True)

    # What comes from the host.

    async def _listen(self) -> None:
        while True:
            try:
                for each in await self._seat.receive():
                    for block in self._transcript.take(each):
                        self._over.append(block)
                    if isinstance(each, Kept):
                        self._notice(each)
            except HostGone as gone:
                self._tell(trouble_of(to_wire(gone)))
            self._stir()

    def _notice(self, kept: Kept) -> None:
        """Remember what can be unfolded or done, and call a person who may be elsewhere."""
        for block in self._over[-1:]:
            if isinstance(block, Card | Trouble):
                self._folded = block
            self._trouble = block if isinstance(block, Trouble) else None
        if kept.seq <= self._until:
            return
        match kept.record:
            case Happened(event=Asked(title=title)):
                self._put_aside()
                self._signals.call(f"needs you: {title}")
            case Answered():
                self._put_back()
            case TurnClosed():
                self._put_back()
                self._signals.call("done")
            case _:
                pass

    def _put_aside(self) -> None:
        """What was being typed was not meant as an answer."""
        if self._screen.buffer.text and not self._put_by:
            self._put_by = self._screen.buffer.text
            self._screen.buffer.reset()

    def _put_back(self) -> None:
        if self._put_by and not self._screen.buffer.text:
            self._screen.buffer.insert_text(self._put_by)
            self._put_by = ""

    async def _write(self) -> None:
        """Write what is over above the screen, gathered for a moment."""
        while True:
            await self._stirred.wait()
            await anyio.sleep(_TICK)
            self._stirred = anyio.Event()
            await self._flush()
            self._screen.redraw()

    async def _flush(self, *, is_whole: bool = False) -> None:
        blocks, self._over = self._over, []
        if blocks:
            columns = shutil.get_terminal_size().columns
            style = Style(columns, self._setting.is_coloured, self._setting.is_light)
            drawn = draw(blocks, style, after=self._last, is_whole=is_whole)
            self._last = blocks[-1]
            await self._screen.above(drawn)

    # What the person means.

    def _mean(self, line: str) -> None:
        setting = self._setting
        match meaning_of(line, draft=setting.draft, session=setting.session):
            case Say(text):
                self._say(text)
            case Run(argv):
                self._tasks.start_soon(self._run, argv)
            case Do(deed, argument):
                self._do(deed, argument)
            case Wrong(problem):
                self._tell(Note(problem, is_warning=True))

    def _say(self, text: str) -> None:
        self._prompts.append(text)
        if self._transcript.is_busy:
            self._command(Steer(self._name(), text))
        else:
            self._command(Prompt(self._name(), text))

    def _answer(self, asked: Asked, text: str) -> bool:
        words = [choice.word for choice in asked.choices]
        if words and text not in words:
            if text.isdigit() and 1 <= int(text) <= len(words):
                text = words[int(text) - 1]
            else:
                self._tell(Note(f"The answers are: {', '.join(words)}", is_warning=True))
                return False
        self._command(Answer(self._name(), asked.question, text))
        return True

    def _take_offer(self) -> bool:
        trouble, self._trouble = self._trouble, None
        if trouble is None or not trouble.offers:
            return True
        line = trouble.offers[0].line
        if line.endswith(" "):
            self._screen.buffer.insert_text(line)
            return False
        self._mean(line)
        return True

    def _do(self, deed: Deed, argument: str) -> None:
        columns = shutil.get_terminal_size().columns
        used = self._transcript.session.used
        deeds: dict[Deed, Callable[[], object]] = {
            Deed.HELP: lambda: self._list(help_lines(columns - 2)),
            Deed.QUIT: self.leave,
            Deed.RETRY: self._retry,
            Deed.RESTART: lambda: self._tasks.start_soon(self._seat.restart),
            Deed.COST: lambda: self._list(cost_lines(used)),
            Deed.REPORT: lambda: self._list([self._transcript.report or "No turn has ended yet."]),
            Deed.DETAILS: self.unfold,
            Deed.BRANCH: lambda: self._branch(argument),
            Deed.MODEL: lambda: self._switch(argument),
            Deed.RUNNER: lambda: self._list([_OTHER_RUNNER]),
            Deed.COMPACT: lambda: self._list(["This agent has no compaction."]),
            Deed.AGENTS: lambda: self._list(["This agent has no helpers."]),
        }
        deeds[deed]()

    def _list(self, lines: Sequence[str]) -> None:
        self._tell(*(Note(line) for line in lines))

    def _switch(self, model: str) -> None:
        self._how["model"] = model
        self._list([f"From the next prompt on: {model}."])

    def _retry(self) -> None:
        if self._prompts:
            self._say(self._prompts[-1])
        else:
            self._tell(Note("Nothing was asked yet."))

    def _branch(self, _argument: str) -> None:
        self._tell(Note("This agent cannot go back to an earlier prompt.", is_warning=True))

    async def _run(self, argv: Sequence[str]) -> None:
        await self._flush()
        await self._screen.aside(lambda: self._commands.run(argv))

    def _command(self, command: Command) -> None:
        self._tasks.start_soon(self._give, command)

    async def _give(self, command: Command) -> None:
        try:
            await self._seat.command(command)
        except Failure as failure:
            self._tell(trouble_of(to_wire(failure)))

    def _tell(self, *blocks: Block | None, is_whole: bool = False) -> None:
        self._over += [each for each in blocks if each is not None]
        if is_whole:
            self._tasks.start_soon(lambda: self._flush(is_whole=True))
        self._stir()

    def _name(self) -> str:
        self._count += 1
        return f"{self._mark}-{self._count}"

    def _stir(self) -> None:
        self._stirred.set()
