"""What a typed line means: words for the agent, or something for us to do."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum
from typing import Final, NamedTuple

from holdfast.runners.model import EFFORTS


class Deed(Enum):
    """What the terminal does itself."""

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


class Slash(NamedTuple):
    """A command that is typed after a slash; one without a deed is a command of ours to run."""

    name: str
    meaning: str
    argument: str = ""
    deed: Deed | None = None
    argv: tuple[str, ...] = ()  # {draft} stands for that of the session
    wants: bool = False  # it means nothing without its argument


SLASHES: Final = (
    Slash(
        "diff",
        "what the agent has changed",
        "[PATH…]",
        argv=("draft", "diff", *("--draft", "{draft}")),
    ),
    Slash(
        "publish",
        "bring the draft into the project",
        "[--only PATH…]",
        argv=("publish", "--draft", "{draft}"),
    ),
    Slash(
        "undo", "take the last step in the draft back", argv=("draft", "undo", "--draft", "{draft}")
    ),
    Slash(
        "merge",
        "bring the project's newer files into the draft",
        "[--ours|--theirs] [PATH…]",
        argv=("draft", "merge", "--draft", "{draft}"),
    ),
    Slash("discard", "throw the draft away", argv=("draft", "discard", "--draft", "{draft}")),
    Slash("checkpoint", "keep the project as it is", "[-m TEXT]", argv=("checkpoint", "create")),
    Slash("checkpoints", "what can be restored", argv=("checkpoint", "list")),
    Slash("restore", "bring a checkpoint back", "ID", argv=("restore",), wants=True),
    Slash("status", "the project and its drafts", argv=("status",)),
    Slash("storage", "what takes space", argv=("storage",)),
    Slash("sessions", "all conversations", argv=("sessions", "list")),
    Slash("login", "enter the key of a provider", "PROVIDER", argv=("login",), wants=True),
    Slash("consent", "who may see this project", "[give|revoke PROVIDER]", argv=("consent",)),
    Slash("doctor", "what works on this machine", argv=("doctor",)),
    Slash(
        "model",
        "whom to ask from now on, and how hard to think",
        "[PROVIDER/MODEL] [EFFORT]",
        Deed.MODEL,
        wants=True,
    ),
    Slash("runner", "how to work with another agent", "[NAME]", Deed.RUNNER),
    Slash("resume", "how to go on with another session", "", Deed.RESUME),
    Slash("compact", "summarise what is older, to make room", "", Deed.COMPACT),
    Slash("branch", "go back to an earlier prompt", "[NUMBER]", Deed.BRANCH),
    Slash("agents", "what helpers of the agent do, or all of one", "[NUMBER]", Deed.AGENTS),
    Slash("cost", "what the conversation has taken", "", Deed.COST),
    Slash("report", "where the report of the last turn is", "", Deed.REPORT),
    Slash("details", "all of what was folded last", "", Deed.DETAILS),
    Slash("retry", "ask again what was asked last", "", Deed.RETRY),
    Slash("restart", "restart the process behind this session", "", Deed.RESTART),
    Slash("help", "this list", "", Deed.HELP),
    Slash("quit", "leave; the session stays", "", Deed.QUIT),
)
_WIDE: Final = 70  # columns in which a command and what it means stand side by side
_INDENT: Final = 4
_KEYS: Final = """\
Alt-Enter: a new line. Tab: complete. Ctrl-O: unfold. Esc Esc: go back. Ctrl-X Ctrl-E: edit. \
Ctrl-C: end the turn. Ctrl-D: leave."""
_DESTRUCTIVE: Final = ("restore", "discard", "undo")  # never proposed for a mistyped word
_BY_NAME: Final = {each.name: each for each in SLASHES}


class Say(NamedTuple):
    """Words for the agent."""

    text: str


class Run(NamedTuple):
    """A command of ours to be run, without its first word."""

    argv: tuple[str, ...]


class Do(NamedTuple):
    """Something for the terminal to do."""

    deed: Deed
    argument: str


class Wrong(NamedTuple):
    """A line that has no meaning, and why."""

    problem: str


Meant = Say | Run | Do | Wrong


def meaning_of(line: str, *, draft: str) -> Meant:
    """What a line means; // begins words that begin with a slash, and a path is no command."""
    text = line.strip()
    if not text.startswith("/") or text.startswith("//"):
        return Say(text.removeprefix("/") if text.startswith("//") else text)
    name, _, argument = text[1:].partition(" ")
    slash = _BY_NAME.get(name)
    if slash is None:
        return Say(text) if "/" in name else Wrong(_unknown(name))
    if slash.wants and not argument.strip():
        return Wrong(f"/{name} wants {slash.argument}.")
    if slash.deed is not None:
        return Do(slash.deed, argument.strip())
    return _run(slash, argument, draft)


def _run(slash: Slash, argument: str, draft: str) -> Run | Wrong:
    try:
        words = shlex.split(argument)
    except ValueError:
        return Wrong(f"/{slash.name}: a quote is not closed.")
    return Run((*(draft if each == "{draft}" else each for each in slash.argv), *words))


def choice_of(argument: str) -> dict[str, str] | Wrong:
    """The model, the effort or both that the words after /model name."""
    found: dict[str, str] = {}
    for word in argument.split():
        name = "effort" if word in EFFORTS else "model" if "/" in word else ""
        if not name or name in found:
            return Wrong(f"Say PROVIDER/MODEL, one of {', '.join(EFFORTS)}, or both.")
        found[name] = word
    return found


def help_lines(width: int) -> list[str]:
    """All commands, side by side with what they mean where there is room; and the keys."""
    heads = [f"/{each.name} {each.argument}".rstrip() for each in SLASHES]
    widest = max(map(len, heads)) + 2 if width >= _WIDE else 0
    lines: list[str] = []
    for head, each in zip(heads, SLASHES, strict=True):
        said = f"{head:<{widest}}{each.meaning}" if widest else f"{head}: {each.meaning}"
        lines += textwrap.wrap(said, width, subsequent_indent=" " * (widest or _INDENT))
    return [*lines, "", *textwrap.wrap(_KEYS, width)]


def completions(typed: str) -> Iterator[Slash]:
    """The commands that a line which begins so can become."""
    if typed.startswith("/") and " " not in typed:
        yield from (each for each in SLASHES if each.name.startswith(typed[1:]))


def _unknown(name: str) -> str:
    near = get_close_matches(name, [each for each in _BY_NAME if each not in _DESTRUCTIVE], n=1)
    return f"There is no /{name}." + (f" Is /{near[0]} meant?" if near else " /help lists all.")
