"""Do what a person means by what they type."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from anyio.abc import TaskGroup

from holdfast.failures import Failure, to_wire
from holdfast.host import Seat
from holdfast.host.model import Abort, Answer, Command, Prompt, Steer
from holdfast.runners.model import Asked
from holdfast.terminal.core.slash import Deed, Do, Run, Say, Wrong, help_lines, meaning_of
from holdfast.terminal.core.status import cost_lines
from holdfast.terminal.core.surface import trouble_of
from holdfast.terminal.model import Block, Note, Trouble
from holdfast.terminal.transcript import Transcript

_OTHER_RUNNER: Final = "An agent is chosen when a session begins: holdfast --runner NAME"


class Shell(Protocol):
    """What the terminal does when it is asked to; none of these may wait."""

    def tell(self, *blocks: Block) -> None:
        """Show something that is no part of the session."""
        ...

    def run_aside(self, argv: Sequence[str]) -> None:
        """Run a command of ours in front of the person."""
        ...

    def prefill(self, text: str) -> None:
        """Begin a line for the person."""
        ...

    def unfold(self) -> None:
        """Show all of what was folded last."""
        ...

    def leave(self) -> None:
        """Leave the session."""
        ...


class Meaning:
    """Turns lines into commands for the session, and into deeds of the terminal."""

    def __init__(
        self, seat: Seat, transcript: Transcript, shell: Shell, session: str, draft: str
    ) -> None:
        self.trouble: Trouble | None = None  # about which Enter does the likeliest
        self._seat, self._transcript, self._shell = seat, transcript, shell
        self._session, self._draft = session, draft
        self._mark, self._count = f"chat-{secrets.token_hex(6)}", 0
        self._said = ""
        self._tasks: TaskGroup

    def begin(self, tasks: TaskGroup) -> None:
        """Have what is meant given to the host by tasks, each by itself: none waits for another."""
        self._tasks = tasks

    def take(self, text: str) -> bool:
        """Do what a line means; say whether it may be forgotten."""
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

    def say(self, text: str) -> None:
        """Tell the agent something: in the turn that runs, or in one of its own."""
        self._said = text
        name = self._name()
        self._do(Steer(name, text) if self._transcript.is_busy else Prompt(name, text))

    def abort(self) -> None:
        """End the turn."""
        self._do(Abort(self._name()))

    def _mean(self, line: str) -> None:
        self.trouble = None
        match meaning_of(line, draft=self._draft, session=self._session):
            case Say(text):
                self.say(text)
            case Run(argv):
                self._shell.run_aside(argv)
            case Do(deed, argument):
                self._deeds(argument)[deed]()
            case Wrong(problem):
                self._shell.tell(Note(problem, is_warning=True))

    def _answer(self, asked: Asked, text: str) -> bool:
        words = [choice.word for choice in asked.choices]
        if words and text.isdigit() and 1 <= int(text) <= len(words):
            text = words[int(text) - 1]
        if words and text not in words:
            self._shell.tell(Note(f"The answers are: {', '.join(words)}", is_warning=True))
            return False
        self._do(Answer(self._name(), asked.question, text))
        return True

    def _take_offer(self) -> bool:
        trouble, self.trouble = self.trouble, None
        if trouble is None or not trouble.offers:
            return True
        line = trouble.offers[0].line
        if line.endswith(" "):
            self._shell.prefill(line)
            return False
        self._mean(line)
        return True

    def _deeds(self, argument: str) -> dict[Deed, Callable[[], object]]:
        columns = shutil.get_terminal_size().columns
        transcript, shell = self._transcript, self._shell
        return {
            Deed.HELP: lambda: self._list(help_lines(columns - 2)),
            Deed.QUIT: shell.leave,
            Deed.RETRY: self._retry,
            Deed.RESTART: lambda: self._tasks.start_soon(self._seat.restart),
            Deed.COST: lambda: self._list(cost_lines(transcript.session.used)),
            Deed.REPORT: lambda: self._list([transcript.report or "No turn has ended yet."]),
            Deed.DETAILS: shell.unfold,
            Deed.BRANCH: lambda: self._list([f"This agent cannot go back{argument and ' there'}."]),
            Deed.MODEL: lambda: self._list(["This agent's model is chosen with --model."]),
            Deed.RUNNER: lambda: self._list([_OTHER_RUNNER]),
            Deed.COMPACT: lambda: self._list(["This agent has no compaction."]),
            Deed.AGENTS: lambda: self._list(["This agent has no helpers."]),
        }

    def _list(self, lines: Sequence[str]) -> None:
        self._shell.tell(*(Note(line) for line in lines))

    def _retry(self) -> None:
        said = self._said or self._transcript.prompted
        if said:
            self.say(said)
        else:
            self._list(["Nothing was asked yet."])

    def _do(self, command: Command) -> None:
        self._tasks.start_soon(self._give, command)

    async def _give(self, command: Command) -> None:
        try:
            await self._seat.command(command)
        except Failure as failure:
            self.trouble = trouble_of(to_wire(failure))
            self._shell.tell(self.trouble)

    def _name(self) -> str:
        self._count += 1
        return f"{self._mark}-{self._count}"
