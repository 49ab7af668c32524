"""Read the command line, and say what is wrong with it in one line."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NoReturn

from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.declarations import PROJECT, VERSION_LINE, Command, Misuse, Option, Request

_WIDTH_MOST = 88
_TALK = (
    "--resume",
    "--continue",
    "--runner",
    "--demo",
    "--plain",
    "--notify",
    "--model",
    "--effort",
    "--scenario",
    "--draft",
)
_BY_NAME = {command.name: command for command in COMMANDS}
_TAKING = {
    flag
    for option in (*TOP, *COMMON, PROJECT)
    if option.values or option.form
    for flag in option.flags
}


def parse(words: Sequence[str]) -> Request | Misuse:
    """Parse a command line; returns a Misuse if it is not valid."""
    name, rest = ("chat", list(words)) if _is_talk(words) else _split(words)
    try:
        return _parse(name, rest)
    except _Misunderstood as error:
        return Misuse(error.problem, error.read_on, "--json" in words, name)


def _is_talk(words: Sequence[str]) -> bool:
    """Whether a person means to talk: who begins with a flag of that, or with a sentence."""
    return bool(words) and (" " in words[0].strip() or words[0].partition("=")[0] in _TALK)


def command_guide(command: Command) -> str:
    """What a command is for, with examples, as its page of help begins."""
    examples = "\n".join(f"  {line}\n      {meaning}" for line, meaning in command.examples)
    return f"{command.description}\n\n{_members(command)}examples:\n{examples}"


def is_group(command: Command) -> bool:
    """Whether it is but the common name of others."""
    return not command.rest and any(name.startswith(f"{command.name} ") for name in _BY_NAME)


def _members(command: Command) -> str:
    """The commands of a group, each with a word about it."""
    members = [each for each in COMMANDS if each.name.startswith(f"{command.name} ")]
    if not members or not is_group(command):
        return ""
    widest = max(len(each.name) for each in members)
    lines = [f"  {each.name:<{widest}}  {each.summary}" for each in members]
    return "\n".join(["commands:", *lines, "", ""])


def command_form(command: Command) -> str:
    """How to write what follows the name of a command."""
    if is_group(command):
        return "<command>"
    form = f"[options] {command.argument[0]}" if command.argument else "[options]"
    return f"{form} -- {command.rest[0]}" if command.rest else form


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    """The name of the command, of one word or two, and all other words in their order."""
    rest = list(words)
    position = 0
    while position < len(rest) and rest[position].startswith("-"):
        position += 2 if rest[position] in _TAKING else 1
    if position >= len(rest):
        return "", rest
    name = rest.pop(position)
    following = rest[position : position + 1]
    if following and not following[0].startswith("-") and name in _BY_NAME:
        longer = f"{name} {following[0]}"
        if longer in _BY_NAME or is_group(_BY_NAME[name]):
            del rest[position]
            return longer, rest
    return name, rest


def _parse(name: str, words: list[str]) -> Request:
    command = _BY_NAME.get(name)
    if command is None:
        parser = _parser("holdfast", "[options] <command>", (*TOP, *COMMON), GUIDE)
        if name:
            group = _BY_NAME.get(name.partition(" ")[0])
            _refuse("command", name, _BY_NAME, _command_parser(group) if group else parser)
    else:
        parser = _command_parser(command)
    own = () if command is None else command.options
    is_many = command is not None and command.is_many
    words, kept = _cut(words, command)
    found, rest = parser.parse_known_args(words)
    if is_many:  # also those between options
        found.argument += [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    if rest:
        _refuse_rest(rest[0], command, (*own, *TOP, *COMMON), parser)
    page = None
    if found.version:
        page = VERSION_LINE
    elif found.help or command is None or is_group(command):
        page = parser.format_help()
    return Request(
        name,
        page,
        is_json=getattr(found, "json", False),
        is_verbose=found.verbose,
        colour=found.color,
        argument=None if is_many else getattr(found, "argument", None),
        given=tuple(_given(own, found)),
        words=tuple(found.argument if is_many else kept),
    )


def _given(options: Iterable[Option], found: argparse.Namespace) -> Iterator[tuple[str, str]]:
    for option in options:
        value = getattr(found, _key(option))
        if value and option.flags[-1] != "--json":  # that one has a place of its own
            for each in value if option.is_repeated or option.is_many else (value,):
                yield option.flags[-1], str(each)


def _cut(words: list[str], command: Command | None) -> tuple[list[str], list[str]]:
    """The words for us, and those that belong to a command which is to be run."""
    if command is None or not command.rest or "--" not in words:
        return words, []
    end = words.index("--")
    return words[:end], words[end + 1 :]


def _command_parser(command: Command) -> _Parser:
    options = (*command.options, *COMMON)
    form, guide = command_form(command), command_guide(command)
    parser = _parser(f"holdfast {command.name}", form, options, guide)
    for option in TOP:  # understood everywhere, taught once
        parser.add_argument(*option.flags, action="store_true", help=argparse.SUPPRESS)
    if command.argument:
        metavar, meaning = command.argument
        count = "*" if command.is_many else "?"
        parser.add_argument("argument", nargs=count, metavar=metavar, help=meaning)
    if command.rest:
        parser.epilog = f"{command.rest[0]}: {command.rest[1]}"
    return parser


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
        if not _takes(option):
            parser.add_argument(*option.flags, action="store_true", help=option.meaning)
        elif option.values:
            parser.add_argument(
                *option.flags, choices=option.values, default=option.default, help=option.meaning
            )
        else:
            parser.add_argument(
                *option.flags,
                action="append" if option.is_repeated else "extend" if option.is_many else "store",
                nargs="+" if option.is_many else "?" if option.alone else None,
                const=option.alone or None,
                metavar=option.form,
                type=_FORMS.get(option.form, _filled),
                help=option.meaning,
            )
    return parser


def _takes(option: Option) -> bool:
    return bool(option.values or option.form)


def _key(option: Option) -> str:
    return option.flags[-1].lstrip("-").replace("-", "_")


def _seconds(word: str) -> str:
    try:
        is_one = 0 < float(word) < float("inf")
    except ValueError:
        is_one = False
    return word if is_one else _unfit("a number of seconds above 0")


def _count(word: str) -> str:
    return word if word.isascii() and word.isdigit() and int(word) else _unfit("a number above 0")


def _filled(word: str) -> str:
    return word or _unfit("more than nothing")


def _unfit(wanted: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"must be {wanted}")


_FORMS = {"SECONDS": _seconds, "N": _count}


def _refuse_rest(
    word: str, command: Command | None, options: Iterable[Option], parser: _Parser
) -> NoReturn:
    if command is not None and command.rest and not word.startswith("-"):
        problem = f"what is to be run stands after --, as in: {parser.prog} -- {word}"
        raise _Misunderstood(problem, f"{parser.prog} --help")
    if command is not None and command.argument and not word.startswith("-"):
        problem = f"{command.argument[0]} is one argument: put it in quotes"
        raise _Misunderstood(problem, f"{parser.prog} --help")
    flags = [flag for option in options for flag in option.flags]
    _refuse("option" if word.startswith("-") else "argument", word, flags, parser)


def _refuse(what: str, word: str, known: Iterable[str], parser: _Parser) -> NoReturn:
    near = get_close_matches(word, known, n=1, cutoff=0.5)
    suggestion = f". Did you mean {near[0]!r}?" if near else ""
    raise _Misunderstood(f"unknown {what} {word!r}{suggestion}", f"{parser.prog} --help")
