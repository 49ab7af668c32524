"""Render the agents of this machine, each with the command that starts it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from holdfast.nouns import printable


def start_command(runner: str, model: str, command: str) -> str:
    """The command line that starts an agent by `holdfast` or `holdfast ask`."""
    match runner:
        case "rehearsal":
            flags = ["--demo"]
        case "native":
            flags = ["--model", model]
        case _:
            flags = ["--runner", runner]
    words = ["holdfast", *(["ask"] if command == "ask" else []), *flags]
    line = shlex.join(map(printable, words))
    return f'{line} "..."' if command == "ask" else line


def agents_page(
    commands: Sequence[str], reasons: Sequence[str], *, is_numbered: bool = False
) -> str:
    """One line per agent: its command, and the reason why it is listed."""
    widest = max(map(len, commands), default=0)
    page = ""
    for number, (command, reason) in enumerate(zip(commands, reasons, strict=True), 1):
        head = f"{number:>3}  " if is_numbered else "    "
        page += f"{head}{command:<{widest}}  {printable(reason)}\n"
    return page
