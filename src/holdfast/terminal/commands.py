"""Execute typed lines: prompts, slash commands and answers to questions."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from anyio.abc import TaskGroup

from holdfast.failures import Failure, to_wire
from holdfast.host import HostSupervisor
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    HostCommand,
    PromptCommand,
    SteerCommand,
)
from holdfast.runners.model import QuestionAsked
from holdfast.terminal.error_view import trouble_of
from holdfast.terminal.live_view import cost_lines, helper_lines
from holdfast.terminal.model import Block, Note, Prompted, Trouble
from holdfast.terminal.ports import Setting
from holdfast.terminal.slash_commands import (
    HoldfastCommand,
    InvalidLine,
    PromptText,
    TerminalAction,
    TerminalCommand,
    choice_of,
    help_lines,
    parse_line,
)
from holdfast.terminal.transcript import Transcript, prompt_lines

_DIGITS_MOST: Final = 9
_GOING_BACK: Final = """\
Change it and press Enter: the conversation goes on from before it. Files stay as they are; /undo
takes steps in the draft back. /branch 0 stays here."""
_SEEN_ANYWAY: Final = (
    TerminalAction.RETRY,
    TerminalAction.DETAILS,
    TerminalAction.QUIT,
)  # without being shown as typed
_OTHER_SESSION: Final = "Leave this one (/quit), then: holdfast --resume. /sessions lists them."
_OTHER_RUNNER: Final = "An agent is chosen when a session begins: holdfast --runner NAME"


Listed = TypeVar("Listed")


class Shell(Protocol):
    """Callbacks into the terminal; none of them may block the event loop."""

    def tell(self, *blocks: Block) -> None:
        """Show lines that are not part of the session."""
        ...

    def run_aside(self, argv: Sequence[str], then: Callable[[], object] | None = None) -> None:
        """Run a holdfast command in the foreground; call `then` if its exit status is 0."""
        ...

    def prefill(self, text: str) -> None:
        """Put text into the input buffer."""
        ...

    def give_back(self, text: str) -> None:
        """Put a line that could not be sent back into the input buffer."""
        ...

    def unfold(self, block: Block | None = None) -> None:
        """Show a block in full, by default the last folded one."""
        ...

    def leave(self) -> None:
        """Leave the session."""
        ...


class Meaning:
    """Executes typed lines: prompts, session commands and actions of the terminal."""

    def __init__(
        self, seat: HostSupervisor, transcript: Transcript, shell: Shell, about: Setting
    ) -> None:
        self.trouble: Trouble | None = None  # about which Enter does the likeliest
        self.is_gone = False  # the backend, which is not started again by itself
        self._seat, self._transcript, self._shell = seat, transcript, shell
        self._about = about
        self._chosen = dict(about.how)  # options for the next prompts
        self._head: str | None = None  # the entry from which the conversation goes on
        self._mark, self._count = f"chat-{secrets.token_hex(6)}", 0
        self._said = ""
        self._tasks: TaskGroup

    def begin(self, tasks: TaskGroup) -> None:
        """Send commands to the host in separate tasks, so that none waits for another."""
        self._tasks = tasks

    def take(self, text: str) -> bool:
        """Execute a line; return whether the input buffer may be cleared."""
        if not text.strip():
            return self._take_offer()
        asked = self._transcript.question
        if asked is not None and not text.startswith("/"):
            return self._answer(asked, text.strip())
        self._mean(text)
        return True

    def words_in(self, line: str) -> str | None:
        """The prompt in a line; None if the line is a slash command."""
        meant = parse_line(line, draft=self._about.draft)
        return meant.text if isinstance(meant, PromptText) else None

    @property
    def is_asked(self) -> bool:
        """Whether Enter executes an offer that asks the user something, such as for consent."""
        return self.trouble is not None and any(e.then for e in self.trouble.offers[:1])

    def choose(self, number: int) -> bool:
        """Answer the open question by a choice number, from 1; return whether one was open."""
        asked = self._transcript.question
        if asked is None or not 1 <= number <= len(asked.choices):
            return False
        return self._answer(asked, asked.choices[number - 1].word)

    def say(self, text: str) -> None:
        """Send a prompt: to the running turn, or as a new turn."""
        self._said = text
        is_added = self._transcript.is_busy and self._head is None
        command = (
            SteerCommand(self._name(), text)
            if is_added
            else PromptCommand(self._name(), text, self.how())
        )
        self._tasks.start_soon(self._told, partial(self._send, command), text)

    def abort(self) -> None:
        """Interrupt the running turn."""
        self._do(AbortCommand(self._name()))

    def _mean(self, line: str, then: str = "") -> None:
        self.trouble = None
        meant = parse_line(line, draft=self._about.draft)
        if not (
            isinstance(meant, PromptText)
            or (isinstance(meant, TerminalCommand) and meant.action in _SEEN_ANYWAY)
        ):
            self._shell.tell(Prompted(line.strip()))
        match meant:
            case PromptText(text):
                self.say(text)
            case HoldfastCommand(argv):
                self._shell.run_aside(argv, partial(self._mean, then) if then else None)
            case TerminalCommand(action, argument):
                self._actions(argument)[action]()
            case InvalidLine(problem):
                self._shell.tell(Note(problem, is_warning=True))

    def _answer(self, asked: QuestionAsked, text: str) -> bool:
        words = [choice.word for choice in asked.choices]
        text = _chosen(words, text) or text
        if words and text not in words:
            self._shell.tell(Note(f"The answers are: {', '.join(words)}", is_warning=True))
            return False
        answer = AnswerCommand(self._name(), asked.question, text)
        self._tasks.start_soon(self._told, partial(self._send, answer), text)
        return True

    def _take_offer(self) -> bool:
        trouble, self.trouble = self.trouble, None
        if trouble is None or not trouble.offers:
            return True
        offer = trouble.offers[0]
        if offer.line.endswith(" "):
            self._shell.prefill(offer.line)
            return False
        self._mean(offer.line, offer.then)
        return True

    def _actions(self, argument: str) -> dict[TerminalAction, Callable[[], object]]:
        columns = shutil.get_terminal_size().columns
        transcript, shell = self._transcript, self._shell
        return {
            TerminalAction.HELP: lambda: self._list(help_lines(columns - 2)),
            TerminalAction.QUIT: shell.leave,
            TerminalAction.RETRY: self._retry,
            TerminalAction.RESTART: lambda: self._tasks.start_soon(self._told, self._restart),
            TerminalAction.COST: lambda: self._list(cost_lines(transcript.session.used)),
            TerminalAction.REPORT: lambda: self._list(
                [transcript.report or "No turn has ended yet."]
            ),
            TerminalAction.DETAILS: shell.unfold,
            TerminalAction.BRANCH: lambda: self._branch(argument),
            TerminalAction.MODEL: lambda: self._switch(argument),
            TerminalAction.RUNNER: lambda: self._list([_OTHER_RUNNER]),
            TerminalAction.RESUME: lambda: self._list([_OTHER_SESSION]),
            TerminalAction.COMPACT: self._compact,
            TerminalAction.AGENTS: lambda: self._helper(argument),
        }

    def _helper(self, number: str) -> None:
        """List subagents, or show the events of one."""
        chosen = _chosen(self._transcript.agents(), number)
        if chosen is not None:
            self._shell.unfold(chosen)
        else:
            self._list(helper_lines(self._transcript))

    def _list(self, lines: Sequence[str]) -> None:
        self._shell.tell(*(Note(line) for line in lines))

    def _retry(self) -> None:
        said = self._said or self._transcript.prompted
        if said:
            self.say(said)
        else:
            self._list(["Nothing was asked yet."])

    def how(self) -> dict[str, str]:
        """Options of the next prompt; the branch point is used once."""
        head, self._head = self._head, None
        before = {"model": self._transcript.model, "effort": self._transcript.effort}
        chosen = {name: value for name, value in (before | self._chosen).items() if value}
        return chosen if head is None else {**chosen, "head": head}

    def _switch(self, argument: str) -> None:
        chosen = choice_of(argument)
        if "model" not in self._about.options():
            self._list(["This agent's model is chosen when a session begins, with --model."])
        elif isinstance(chosen, InvalidLine):
            self._shell.tell(Note(chosen.problem, is_warning=True))
        else:
            self._chosen |= chosen
            whom, effort = chosen.get("model", "the model"), chosen.get("effort")
            how = f" to think with effort {effort}" if effort else ""
            self._list([f"From the next prompt on, {whom} is asked{how}."])

    def _compact(self) -> None:
        if "compact" not in self._about.options():
            self._list(["This agent makes room by itself, or not at all: it cannot be told to."])
        else:
            self._do(PromptCommand(self._name(), "", {**self.how(), "compact": "yes"}))

    def _branch(self, number: str) -> None:
        """List earlier prompts, or branch from one of them."""
        prompts = self._transcript.branches.prompts()
        columns = shutil.get_terminal_size().columns
        if "head" not in self._about.options():
            self._list(["This agent cannot go back to an earlier prompt."])
        elif not prompts:
            self._list(["Nothing was asked yet."])
        elif not number:
            lines = prompt_lines(prompts, width=columns - 4)
            self._list([*lines, "/branch NUMBER goes back to before one of them."])
            self._shell.prefill("/branch ")
        elif number == "0":
            self._head = None
            self._list(["The conversation goes on from where it is."])
        elif chosen := _chosen(prompts, number):
            text, self._head, _ = chosen
            self._list([" ".join(_GOING_BACK.split())])
            self._shell.prefill(text)
        else:
            self._shell.tell(Note(f"There are {len(prompts)} prompts.", is_warning=True))

    def _do(self, command: HostCommand) -> None:
        self._tasks.start_soon(self._told, partial(self._seat.command, command))

    async def _send(self, command: HostCommand) -> None:
        """Send a command to the host; restarts a host that was given up."""
        if self.is_gone:
            await self._restart()
        await self._seat.command(command)

    async def _restart(self) -> None:
        await self._seat.restart()
        self.is_gone = False

    async def _told(self, work: Callable[[], Awaitable[object]], typed: str = "") -> None:
        """Run work; on a failure show it and put the typed line back into the input."""
        try:
            await work()
        except Failure as failure:
            self.is_gone = isinstance(failure, HostGone | SessionClosed)
            self.trouble = trouble_of(to_wire(failure))
            self._shell.tell(self.trouble)
            self._shell.give_back(typed)

    def _name(self) -> str:
        self._count += 1
        return f"{self._mark}-{self._count}"


def _chosen(listed: Sequence[Listed], number: str) -> Listed | None:
    """The item with this number, from 1; None if it is not a number or out of range."""
    is_one = number.isdecimal() and len(number) <= _DIGITS_MOST
    return listed[int(number) - 1] if is_one and 1 <= int(number) <= len(listed) else None
