"""What the examples of commands mean to the parser."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from holdfast.cli.declarations import Command, Misuse, Request
from holdfast.cli.parser import parse


def understood(commands: Iterable[Command]) -> dict[str, Request | Misuse]:
    """Each example that calls us, and how it is understood."""
    found: dict[str, Request | Misuse] = {}
    for command in commands:
        for line, _ in command.examples:
            words = shlex.split(line, comments=True)
            if "holdfast" in words:
                ours = words[words.index("holdfast") + 1 :]
                ends = [n for n, word in enumerate(ours) if word in {"|", "<", ">", "2>/dev/null"}]
                found[line] = parse(ours[: ends[0]] if ends else ours)
    return found


def misunderstood(commands: Iterable[Command]) -> dict[str, Request | Misuse]:
    """The examples that mean nothing, or only show a page of help without asking for it."""
    return {
        line: meaning
        for line, meaning in understood(commands).items()
        if isinstance(meaning, Misuse) or (meaning.page is not None and "--help" not in line)
    }
