"""Slash commands for plain lines: `--plain`, TERM=dumb, a pipe, `holdfast attach`.

The commands are those of the terminal (`terminal.Meaning`). What they show is printed as lines
without escape sequences; commands of ours run as child processes, one after another.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from holdfast.app.sessions import KeptSession
from holdfast.app.settings import Settings, environment
from holdfast.cli.output import is_terminal
from holdfast.cli.terminal import Terminal
from holdfast.host import Seat, Seen
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

    def take(self, seen: Seen) -> None:
        """Learn what happened in the session: commands are about it."""
        for block in self._transcript.take(seen):
            self._folded = block

    def words_in(self, line: str, seat: Seat) -> str | None:
        """The words for the agent in a line; None if the line is a command."""
        return self._of(seat).words_in(line)

    async def run(self, line: str, seat: Seat) -> None:
        """Do what a line with a slash asks for; return when it is done."""
        meaning = self._of(seat)
        async with anyio.create_task_group() as self._tasks:
            meaning.begin(self._tasks)
            meaning.take(line)
        shown, self._shown = self._shown, []
        for text in shown:
            await self._terminal.say(text)

    def how(self, seat: Seat) -> dict[str, str]:
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

    def _of(self, seat: Seat) -> Meaning:
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
        from holdfast.cli.host import OnDemand

        return OnDemand(self._session, self._settings).options

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
