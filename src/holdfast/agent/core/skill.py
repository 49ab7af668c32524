"""Read what a skill is from the head of its file, and refuse what is none."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

NAME_CHARS_MAX: Final = 64
PURPOSE_CHARS_MAX: Final = 1024
FILE: Final = "SKILL.md"
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FENCE: Final = "---"


class Skill(NamedTuple):
    """Instructions for a sort of work: what they are called, what for, and the words themselves."""

    name: str
    purpose: str
    body: str


def skill_in(text: str, directory: str) -> Skill | str:
    """The skill that a file in a directory is; or why it is none, in words."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (line.rstrip() for line in lines[1:]):
        return "it has no head between two lines of ---"
    last = next(n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == _FENCE)
    head = _head(lines[1:last])
    name, purpose = head.get("name", ""), head.get("description", "")
    if name != directory:
        return f"its name is {name!r}, and its directory is {directory!r}"
    if len(name) > NAME_CHARS_MAX or not _NAME.fullmatch(name):
        return f"its name is not of at most {NAME_CHARS_MAX} letters a-z, digits and hyphens"
    if not purpose:
        return "it has no description"
    if len(purpose) > PURPOSE_CHARS_MAX:
        return f"its description is longer than {PURPOSE_CHARS_MAX} characters"
    return Skill(name, purpose, "\n".join(lines[last + 1 :]).strip("\n"))


def _head(lines: list[str]) -> dict[str, str]:
    """The values at the top level; of all else nobody here needs to know."""
    found: dict[str, str] = {}
    key = ""
    for line in lines:
        if line[:1] in (" ", "\t") or not line.strip():
            if key:
                found[key] = f"{found[key]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        key = key.strip() if colon else ""
        if key:
            found[key] = _plain(value.strip())
    return found


def _plain(value: str) -> str:
    if value[:1] in (">", "|") and len(value) <= 2:
        return ""  # the lines that follow are meant
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
