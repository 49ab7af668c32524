"""Data types for commands, options and parsed requests."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import __version__

VERSION_LINE = f"holdfast {__version__}\n"


class Option(NamedTuple):
    """A flag with its help text, and how many values of which form it takes.

    `values` lists the allowed values, `form` names a free one; with neither the flag takes none.
    `is_repeated`: the flag precedes each value. `is_many`: the flag precedes all values at once.
    `alone` is the value if the flag is given without one.
    """

    flags: tuple[str, ...]
    meaning: str
    values: tuple[str, ...] = ()
    default: str | None = None
    form: str = ""
    is_repeated: bool = False
    is_many: bool = False
    alone: str = ""


ALONE = "alone"  # marks `holdfast` without arguments, terminal or input
CHOOSE = "?"  # value of a flag for which the user is prompted; no id begins with it
PROJECT = Option(
    ("-C", "--project"),
    "use the project in DIR (default: the current directory or one above)",
    form="DIR",
)


class Command(NamedTuple):
    """A command with its help page, options and arguments.

    A command whose name is a prefix of others is their common help page, unless it has a handler.
    """

    name: str
    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...] = ()
    argument: tuple[str, str] | None = None  # its form and its help text
    rest: tuple[str, str] | None = None  # all words after --, likewise
    is_many: bool = False  # the argument may be repeated: `Request.words`


class Request(NamedTuple):
    """A parsed command line; if `page` is set, printing it is all that remains to do."""

    command: str = ""
    page: str | None = None
    is_json: bool = False
    is_verbose: bool = False
    colour: str = "auto"
    argument: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()

    def has(self, flag: str) -> bool:
        """Whether the flag was given."""
        return self.value(flag) is not None

    def value(self, flag: str) -> str | None:
        """The value of a flag, or None if it was not given."""
        return dict(self.given).get(flag)

    def values(self, flag: str) -> tuple[str, ...]:
        """All values of a repeated flag, in order."""
        return tuple(value for each, value in self.given if each == flag)


class Misuse(NamedTuple):
    """A command line that cannot be parsed: the problem, and the help page to read."""

    problem: str
    read_on: str
    is_json: bool
    command: str = ""
