"""Parse a typed line: a prompt for the agent, or a slash command."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum
from typing import Final, NamedTuple

from holdfast.runners.model import EFFORTS


class TerminalAction(Enum):
    """Slash commands that the terminal executes itself."""

    RETRY = "retry"
    RESTART = "restart"
    MODEL = "model"
    RUNNER = "runner"
    RESUME = "resume"
    COMPACT = "compact"
    BRANCH = "branch"
    AGENTS = "agents"
    COST = "cost"
    REPORT = "report"
    DETAILS = "details"
    HELP = "help"
    QUIT = "quit"


class SlashCommand(NamedTuple):
    """A slash command; without an action it runs the holdfast command `argv`."""

    name: str
    meaning: str
    argument: str = ""
    action: TerminalAction | None = None
    argv: tuple[str, ...] = ()  # {draft} is replaced by the draft of the session
    wants: bool = False  # the argument is required


SLASH_COMMANDS: Final = (
    SlashCommand(
        "diff",
        "show what the agent has changed",
        "[PATH…]",
        argv=("draft", "diff", *("--draft", "{draft}")),
    ),
    SlashCommand(
        "publish",
        "apply the draft to the project",
        "[--only PATH…]",
        argv=("publish", "--draft", "{draft}"),
    ),
    SlashCommand(
        "undo", "undo the last step in the draft", argv=("draft", "undo", "--draft", "{draft}")
    ),
    SlashCommand(
        "merge",
        "merge newer changes of the project into the draft",
        "[--ours|--theirs] [PATH…]",
        argv=("draft", "merge", "--draft", "{draft}"),
    ),
    SlashCommand("discard", "delete the draft", argv=("draft", "discard", "--draft", "{draft}")),
    SlashCommand(
        "checkpoint",
        "create a checkpoint of the project",
        "[-m TEXT]",
        argv=("checkpoint", "create"),
    ),
    SlashCommand("checkpoints", "list checkpoints", argv=("checkpoint", "list")),
    SlashCommand("restore", "restore a checkpoint", "ID", argv=("restore",), wants=True),
    SlashCommand("status", "show the project and its drafts", argv=("status",)),
    SlashCommand("storage", "show disk usage", argv=("storage",)),
    SlashCommand("sessions", "list sessions", argv=("sessions", "list")),
    SlashCommand("login", "enter the key of a provider", "PROVIDER", argv=("login",), wants=True),
    SlashCommand(
        "consent",
        "show or change which providers may see this project",
        "[give|revoke PROVIDER]",
        argv=("consent",),
    ),
    SlashCommand("doctor", "check this machine", argv=("doctor",)),
    SlashCommand(
        "model",
        "choose the model and the reasoning effort",
        "[PROVIDER/MODEL] [EFFORT]",
        TerminalAction.MODEL,
        wants=True,
    ),
    SlashCommand("runner", "show how to use another agent", "[NAME]", TerminalAction.RUNNER),
    SlashCommand("resume", "show how to resume another session", "", TerminalAction.RESUME),
    SlashCommand("compact", "summarise older messages to free context", "", TerminalAction.COMPACT),
    SlashCommand("branch", "go back to an earlier prompt", "[NUMBER]", TerminalAction.BRANCH),
    SlashCommand("agents", "list subagents, or show one", "[NUMBER]", TerminalAction.AGENTS),
    SlashCommand("cost", "show tokens and cost of the session", "", TerminalAction.COST),
    SlashCommand("report", "show the path of the last turn's report", "", TerminalAction.REPORT),
    SlashCommand("details", "show the last folded text in full", "", TerminalAction.DETAILS),
    SlashCommand("retry", "send the last prompt again", "", TerminalAction.RETRY),
    SlashCommand("restart", "restart the process behind this session", "", TerminalAction.RESTART),
    SlashCommand("help", "list commands and keys", "", TerminalAction.HELP),
    SlashCommand("quit", "leave; the session is kept", "", TerminalAction.QUIT),
)
_WIDE: Final = 70  # columns from which names and help texts are side by side
_INDENT: Final = 4
_KEYS: Final = """\
Alt-Enter: a new line. Tab: complete. Ctrl-O: unfold. Esc Esc: go back. Ctrl-X Ctrl-E: edit. \
Ctrl-C: end the turn. Ctrl-D: leave."""
_DESTRUCTIVE: Final = ("restore", "discard", "undo")  # never suggested for a mistyped name
_BY_NAME: Final = {each.name: each for each in SLASH_COMMANDS}


class PromptText(NamedTuple):
    """A prompt for the agent."""

    text: str


class HoldfastCommand(NamedTuple):
    """Arguments of a holdfast command to run."""

    argv: tuple[str, ...]


class TerminalCommand(NamedTuple):
    """An action of the terminal, with the rest of the line."""

    action: TerminalAction
    argument: str


class InvalidLine(NamedTuple):
    """A line that cannot be parsed, and the reason."""

    problem: str


ParsedLine = PromptText | HoldfastCommand | TerminalCommand | InvalidLine


def parse_line(line: str, *, draft: str) -> ParsedLine:
    """Parse a line. `//` escapes a prompt that begins with a slash; a path is a prompt."""
    text = line.strip()
    if not text.startswith("/") or text.startswith("//"):
        return PromptText(text.removeprefix("/") if text.startswith("//") else text)
    name, _, argument = text[1:].partition(" ")
    slash = _BY_NAME.get(name)
    if slash is None:
        return PromptText(text) if "/" in name else InvalidLine(_unknown(name))
    if slash.wants and not argument.strip():
        return InvalidLine(f"/{name} needs {slash.argument}.")
    if slash.action is not None:
        return TerminalCommand(slash.action, argument.strip())
    return _run(slash, argument, draft)


def _run(slash: SlashCommand, argument: str, draft: str) -> HoldfastCommand | InvalidLine:
    try:
        words = shlex.split(argument)
    except ValueError:
        return InvalidLine(f"/{slash.name}: a quote is not closed.")
    return HoldfastCommand((*(draft if each == "{draft}" else each for each in slash.argv), *words))


def choice_of(argument: str) -> dict[str, str] | InvalidLine:
    """The model, the effort or both from the argument of /model."""
    found: dict[str, str] = {}
    for word in argument.split():
        name = "effort" if word in EFFORTS else "model" if "/" in word else ""
        if not name or name in found:
            return InvalidLine(f"Type PROVIDER/MODEL, one of {', '.join(EFFORTS)}, or both.")
        found[name] = word
    return found


def help_lines(width: int) -> list[str]:
    """The help page: commands, and keys; in two columns if `width` allows."""
    heads = [f"/{each.name} {each.argument}".rstrip() for each in SLASH_COMMANDS]
    widest = max(map(len, heads)) + 2 if width >= _WIDE else 0
    lines: list[str] = []
    for head, each in zip(heads, SLASH_COMMANDS, strict=True):
        said = f"{head:<{widest}}{each.meaning}" if widest else f"{head}: {each.meaning}"
        lines += textwrap.wrap(said, width, subsequent_indent=" " * (widest or _INDENT))
    return [*lines, "", *textwrap.wrap(_KEYS, width)]


def completions(typed: str) -> Iterator[SlashCommand]:
    """Slash commands that complete the typed text."""
    if typed.startswith("/") and " " not in typed:
        yield from (each for each in SLASH_COMMANDS if each.name.startswith(typed[1:]))


def _unknown(name: str) -> str:
    near = get_close_matches(name, [each for each in _BY_NAME if each not in _DESTRUCTIVE], n=1)
    return f"Unknown command /{name}." + (
        f" Did you mean /{near[0]}?" if near else " /help lists all commands."
    )
