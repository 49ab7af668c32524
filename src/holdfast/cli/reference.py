"""The page of the documentation that is made from the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.declarations import Command, Option
from holdfast.cli.parser import command_form

_HEAD = """\
# The command line

Made by `make docs` from the commands; do not edit.
"""


def page() -> str:
    """The reference of all commands, their options and examples."""
    sections = [
        _HEAD,
        _section("holdfast", f"```text\n{GUIDE}\n```", (*TOP, *COMMON)),
        *map(_command, COMMANDS),
    ]
    return "\n".join(sections)


def _command(command: Command) -> str:
    examples = "\n".join(f"# {meaning}\n{line}" for line, meaning in command.examples)
    usage = f"holdfast {command.name} {command_form(command)}"
    text = f"`{usage}`\n\n{command.description}\n\n```sh\n{examples}\n```"
    argument = [Option((command.argument[0],), command.argument[1])] if command.argument else []
    if command.rest:
        argument.append(Option((command.rest[0],), command.rest[1]))
    options = (*argument, *command.options, *COMMON)
    return _section(f"holdfast {command.name}", text, options)


def _section(title: str, text: str, options: tuple[Option, ...]) -> str:
    return "\n".join([f"## {title}", "", text, "", *_table(options)]) + "\n"


def _table(options: tuple[Option, ...]) -> Iterator[str]:
    yield from ("| option | meaning |", "| --- | --- |")
    for option in options:
        flags = ", ".join(f"`{flag}`" for flag in option.flags)
        form = f"[{option.form}]" if option.alone else option.form
        values = f" {', '.join(option.values) or form}".rstrip()
        yield f"| {flags}{values} | {option.meaning} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
