"""Read the command line, and say what is wrong with it in one line."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn

from holdfast.cli.commands import (
    COMMANDS,
    COMMON,
    GUIDE,
    TOP,
    VERSION_LINE,
    Command,
    Misuse,
    Option,
    Request,
)

_WIDTH_MOST = 88
_BY_NAME = {command.name: command for command in COMMANDS}


def parse(words: Sequence[str]) -> Request | Misuse:
    """What is asked, or what is wrong with it."""
    try:
        return _parse(words)
    except _Misunderstood as error:
        return Misuse(error.problem, error.read_on, is_json="--json" in words)


def command_guide(command: Command) -> str:
    """What a command is for, with examples, as its page of help begins."""
    examples = "\n".join(f"  {line}\n      {meaning}" for line, meaning in command.examples)
    return f"{command.description}\n\nexamples:\n{examples}"


def _parse(words: Sequence[str]) -> Request:
    options: tuple[Option, ...] = (*TOP, *COMMON)
    parser = top = _parser("holdfast", "[options] <command>", options, GUIDE)
    top.add_argument("command", nargs="?", default="", help=argparse.SUPPRESS)
    found, rest = top.parse_known_args(list(words))
    if found.command:
        command = _BY_NAME.get(found.command) or _refuse("command", found.command, _BY_NAME, top)
        options = (*command.options, *COMMON)
        parser = _parser(f"holdfast {command.name}", "[options]", options, command_guide(command))
        found, rest = parser.parse_known_args(rest, found)
    if rest:
        flags = [flag for option in options for flag in option.flags]
        _refuse("option" if rest[0].startswith("-") else "argument", rest[0], flags, parser)
    page = None
    if found.version:
        page = VERSION_LINE
    elif found.help or not found.command:
        page = parser.format_help()
    is_json = getattr(found, "json", False)
    return Request(found.command, page, is_json, found.verbose, found.color)


class _Misunderstood(Exception):
    """Ends the parsing of words that have no meaning."""

    def __init__(self, problem: str, read_on: str) -> None:
        super().__init__(problem)
        self.problem, self.read_on = problem, read_on


class _Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong."""
        raise _Misunderstood(message, f"{self.prog} --help")


def _parser(name: str, form: str, options: Iterable[Option], guide: str) -> _Parser:
    width = min(shutil.get_terminal_size().columns, _WIDTH_MOST)
    parser = _Parser(
        prog=name,
        usage=f"{name} {form}",
        description=guide,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
        add_help=False,
        allow_abbrev=False,
    )
    for option in options:
        if option.values:
            default = option.values[0]
            parser.add_argument(
                *option.flags, choices=option.values, default=default, help=option.meaning
            )
        else:
            parser.add_argument(*option.flags, action="store_true", help=option.meaning)
    return parser


def _refuse(what: str, word: str, known: Iterable[str], parser: _Parser) -> NoReturn:
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    suggestion = f". Did you mean {near[0]!r}?" if near else ""
    raise _Misunderstood(f"unknown {what} {word!r}{suggestion}", f"{parser.prog} --help")
