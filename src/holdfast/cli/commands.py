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

environment:
  HOLDFAST_HOME    keep everything below this directory (an absolute path)
  HOLDFAST_DEBUG   1: say more when something fails
  NO_COLOR         any value: no colours

exit statuses:
  0 done   1 failed   2 wrong usage   3 needs approval   4 not signed in
  5 budget spent   69 unavailable   74 not written   78 wrong setting
  126 no sandbox   130 interrupted   141 reader gone   143 terminated"""


class Option(NamedTuple):
    """A flag, its values if it takes one, and what it does."""

    flags: tuple[str, ...]
    values: tuple[str, ...]
    meaning: str


class Command(NamedTuple):
    """Something that can be done, and how to ask for it."""

    name: str
    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]


class Request(NamedTuple):
    """What is asked this time; a `page`, if there is one, is the whole answer."""

    command: str = ""
    page: str | None = None
    is_json: bool = False
    is_verbose: bool = False
    colour: str = "auto"


class Misuse(NamedTuple):
    """Words that have no meaning, what is wrong with them, and where to read on."""

    problem: str
    read_on: str
    is_json: bool


TOP = (Option(("-V", "--version"), (), "show the version and exit"),)
COMMON = (
    Option(("-h", "--help"), (), "show this page and exit"),
    Option(("-v", "--verbose"), (), "say more when something fails"),
    Option(("--color",), ("auto", "always", "never"), "when to use colours (auto: on a terminal)"),
)
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
        options=(Option(("--json",), (), "print one JSON object instead of a page"),),
    ),
)
