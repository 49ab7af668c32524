"""What can be asked on the command line: the words for it, before any command is named."""

from __future__ import annotations

from typing import NamedTuple

from holdfast import __version__

VERSION_LINE = f"holdfast {__version__}\n"


class Option(NamedTuple):
    """A flag and what it does; it takes one of some values, a value of some form, or none.

    One that is repeated is given with each of its values, one that takes many before all of them.
    One that is understood alone means `alone` then.
    """

    flags: tuple[str, ...]
    meaning: str
    values: tuple[str, ...] = ()
    default: str | None = None
    form: str = ""
    is_repeated: bool = False
    is_many: bool = False
    alone: str = ""


ALONE = "alone"  # stands in a request of `holdfast` without words, terminal and input
CHOOSE = "?"  # stands for what a person is to be asked for; it begins no id
PROJECT = Option(
    ("-C", "--project"), "the project is there (otherwise: here, or above)", form="DIR"
)


class Command(NamedTuple):
    """Something that can be done, and how to ask for it.

    A command whose name begins the names of others is their common page of help, unless it runs
    something itself.
    """

    name: str
    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    options: tuple[Option, ...] = ()
    argument: tuple[str, str] | None = None  # its form, and what it means
    rest: tuple[str, str] | None = None  # all words after --, likewise
    is_many: bool = False  # the argument may be given any number of times: those are the words


class Request(NamedTuple):
    """What is asked this time; a `page`, if there is one, is the whole answer."""

    command: str = ""
    page: str | None = None
    is_json: bool = False
    is_verbose: bool = False
    colour: str = "auto"
    argument: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()

    def has(self, flag: str) -> bool:
        """Whether a flag of the command was given."""
        return self.value(flag) is not None

    def value(self, flag: str) -> str | None:
        """What was given with a flag of the command, if it was."""
        return dict(self.given).get(flag)

    def values(self, flag: str) -> tuple[str, ...]:
        """All that was given with a flag that may be repeated, in order."""
        return tuple(value for each, value in self.given if each == flag)


class Misuse(NamedTuple):
    """Words that have no meaning, what is wrong with them, and where to read on."""

    problem: str
    read_on: str
    is_json: bool
    command: str = ""
