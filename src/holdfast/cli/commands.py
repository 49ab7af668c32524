"""What can be asked on the command line, as data: help, parser and reference are made of it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import __version__

VERSION_LINE = f"holdfast {__version__}\n"
GUIDE = """\
Holdfast runs coding agents so that nothing is lost: not your files, not the
agent's work, not the conversation, not the reason why something failed.

first steps:
  holdfast doctor            see what this machine can do, and what is missing
  holdfast doctor --json     the same, for a program
  holdfast codex ask "..."   let Codex take a turn, and watch it
  holdfast codex threads     the conversations that can be continued

environment:
  HOLDFAST_HOME    keep everything below this directory (an absolute path)
  HOLDFAST_CODEX   the program that is Codex (otherwise: codex, from the PATH)
  HOLDFAST_DEBUG   1: say more when something fails
  NO_COLOR         any value: no colours

exit statuses:
  0 done   1 failed   2 wrong usage   3 needs approval   4 not signed in
  5 budget spent   69 unavailable   74 not written   78 wrong setting
  126 no sandbox   130 interrupted   141 reader gone   143 terminated"""


class Option(NamedTuple):
    """A flag and what it does; it takes one of some values, a value of some form, or none."""

    flags: tuple[str, ...]
    meaning: str
    values: tuple[str, ...] = ()
    default: str | None = None
    form: str = ""


class Command(NamedTuple):
    """Something that can be done, and how to ask for it.

    A command whose name begins the names of others is their common page of help.
    """

    name: str
    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...] = ()
    argument: tuple[str, str] | None = None  # its form, and what it means


class Request(NamedTuple):
    """What is asked this time; a `page`, if there is one, is the whole answer."""

    command: str = ""
    page: str | None = None
    is_json: bool = False
    is_verbose: bool = False
    colour: str = "auto"
    argument: str | None = None
    given: tuple[tuple[str, str], ...] = ()

    def value(self, flag: str) -> str | None:
        """What was given with a flag of the command, if it was."""
        return dict(self.given).get(flag)


class Misuse(NamedTuple):
    """Words that have no meaning, what is wrong with them, and where to read on."""

    problem: str
    read_on: str
    is_json: bool
    command: str = ""


TOP = (Option(("-V", "--version"), "show the version and exit"),)
COMMON = (
    Option(("-h", "--help"), "show this page and exit"),
    Option(("-v", "--verbose"), "say more when something fails"),
    Option(
        ("--color",),
        "when to use colours (auto: on a terminal)",
        values=("auto", "always", "never"),
        default="auto",
    ),
)
_CODEX = Option(("--codex",), "the program that is Codex, instead of HOLDFAST_CODEX", form="PATH")
COMMANDS = (
    Command(
        name="doctor",
        summary="see what this machine can do, and what is missing",
        description="""\
Try everything that Holdfast relies on, by doing it: sync a file, start a
sandbox, mount an overlay, open a socket. Each finding comes with the command
that mends it. Nothing on the machine is changed.

Exits with 1 when a check failed, which means that a promise cannot be kept
here; a warning is not a failure.""",
        examples=(
            ("holdfast doctor", "look at this machine"),
            ("holdfast doctor --json | jq '.checks[] | select(.status != \"ok\")'", "what to mend"),
            ("HOLDFAST_HOME=/mnt/disk holdfast doctor", "would that disk do?"),
        ),
        options=(Option(("--json",), "print one JSON object instead of a page"),),
    ),
    Command(
        name="codex",
        summary="talk with Codex",
        description="""\
Talk with Codex, the coding agent of OpenAI. It has to be installed and signed
in by itself; Holdfast starts it for each command and ends it afterwards.""",
        examples=(
            ('holdfast codex ask "Why does the build fail?"', "let it take a turn, and watch it"),
            ("holdfast codex threads", "the conversations that can be continued"),
            ("holdfast codex ask --help", "all about one command"),
        ),
    ),
    Command(
        name="codex ask",
        summary="let Codex take a turn, and watch it",
        description="""\
Let Codex take one turn. What it says goes to standard output as it comes;
what it does (commands, file changes, retries) to standard error, a line each.

Codex asks before it does what its policy does not allow. You answer on the
terminal: y yes, a yes for this session, n no, c no and end the turn. Without a
terminal, or after ten minutes without an answer, it is a no.

Ctrl-C interrupts the turn, a second one leaves at once. The thread is kept by
Codex; the last line says how to continue it.

Text is shown so that it cannot steer the terminal, also in a pipe; --json has
it as it came, and always ends with a record of the type "result".""",
        examples=(
            ('holdfast codex ask "Fix the failing test"', "in this directory"),
            (
                'holdfast codex ask --resume 01a1... "And now the docs"',
                "continue that conversation",
            ),
            ("holdfast codex ask - < task.md", "the prompt is in a file"),
            (
                'holdfast codex ask --sandbox read-only "Explain this" > answer.md',
                "keep what it says, and watch what it does",
            ),
            (
                'holdfast codex ask --json "List the TODOs" | tail -1 | jq -r .text',
                "only the last message",
            ),
        ),
        options=(
            Option(("--json",), "print one JSON object per line instead of text"),
            Option(("--cwd",), "where Codex works (otherwise: here)", form="DIR"),
            Option(("--model",), "the model to ask (otherwise: as Codex is set up)", form="NAME"),
            Option(
                ("--sandbox",),
                "what commands may touch (otherwise: as Codex is set up)",
                values=("read-only", "workspace-write", "danger-full-access"),
            ),
            Option(
                ("--approval-policy",),
                "when Codex asks you (otherwise: as Codex is set up)",
                values=("untrusted", "on-request", "never"),
            ),
            Option(("--timeout",), "interrupt the turn after so long", form="SECONDS"),
            Option(("--resume",), "continue this thread; it keeps its settings", form="THREAD"),
            _CODEX,
        ),
        argument=("PROMPT", "what to ask; - or nothing: read it from standard input"),
    ),
    Command(
        name="codex threads",
        summary="the conversations that can be continued",
        description="""\
List the threads that Codex keeps, the latest first: how to name each, when it
was last used, and how it began.""",
        examples=(
            ("holdfast codex threads", "the latest ten"),
            ("holdfast codex threads --cwd . --limit 100", "those of this directory"),
            ("holdfast codex threads --json | jq -r .id", "their ids, for a program"),
        ),
        options=(
            Option(("--json",), "print one JSON object per thread instead of a page"),
            Option(("--limit",), "how many at most (otherwise: 10)", form="N"),
            Option(("--cwd",), "only those that worked in this directory", form="DIR"),
            _CODEX,
        ),
    ),
)
