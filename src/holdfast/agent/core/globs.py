"""Patterns for paths: those of a search, and those of `.gitignore` files."""

from __future__ import annotations

import re
from dataclasses import dataclass


def matcher(glob: str) -> re.Pattern[str]:
    """What matches whole paths as a glob does; without a slash it is about the name alone.

    `*` and `?` stay within a name, `**` does not, `{a,b}` is either.
    """
    anchored = glob.lstrip("/")
    prefix = "" if "/" in glob else "(?:.*/)?"
    return re.compile(prefix + _braced(anchored), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a `.gitignore`, for paths below the directory that it is in."""

    pattern: re.Pattern[str]
    ignores: bool
    only_directories: bool


def rules_in(text: str) -> tuple[Rule, ...]:
    """The rules of a `.gitignore`, in order."""
    found = (_rule(line) for line in text.split("\n"))
    return tuple(rule for rule in found if rule is not None)


def is_ignored(rules: tuple[Rule, ...], path: str, *, is_directory: bool) -> bool | None:
    """What the last rule says that fits a path relative to its directory; None if none does."""
    for rule in reversed(rules):
        if (is_directory or not rule.only_directories) and rule.pattern.fullmatch(path):
            return rule.ignores
    return None


def _rule(line: str) -> Rule | None:
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    pattern = _trimmed(line if ignores else line[1:])
    only_directories = pattern.endswith("/")
    pattern = pattern.rstrip("/") if only_directories else pattern
    if not pattern:
        return None
    prefix = "" if "/" in pattern else "(?:.*/)?"
    regex = _translated(pattern.removeprefix("/"))
    return Rule(re.compile(prefix + regex, re.DOTALL), ignores, only_directories)


def _trimmed(line: str) -> str:
    """Without the blanks at its end, unless a backslash stands before them."""
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    return line


def _braced(glob: str) -> str:
    """A regular expression for a glob with braces; those around a single thing mean themselves."""
    first = glob.find("{")
    last = _closing(glob, first)
    inner = _split(glob[first + 1 : last]) if 0 <= first < last else []
    if len(inner) < 2:
        return _translated(glob)
    either = "|".join(_braced(part) for part in inner)
    return f"{_translated(glob[:first])}(?:{either}){_braced(glob[last + 1 :])}"


def _closing(glob: str, first: int) -> int:
    depth = 0
    for place in range(max(first, 0), len(glob)):
        depth += {"{": 1, "}": -1}.get(glob[place], 0)
        if depth == 0 and glob[place] == "}":
            return place
    return -1


def _split(inner: str) -> list[str]:
    parts, depth = [""], 0
    for character in inner:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _translated(glob: str) -> str:
    """A regular expression for one glob without braces."""
    made, place = "", 0
    while place < len(glob):
        rest = glob[place:]
        if rest.startswith("**/") and (place == 0 or glob[place - 1] == "/"):
            made, place = made + "(?:.*/)?", place + 3
        elif rest == "**" and (place == 0 or glob[place - 1] == "/"):
            made, place = made + ".*", place + 2
        elif rest[0] == "*":
            made, place = made + "[^/]*", place + 1
        elif rest[0] == "?":
            made, place = made + "[^/]", place + 1
        elif rest[0] == "[" and (found := re.match(r"\[([!^]?)(\]?[^\]]*)\]", rest)):
            made, place = made + _class(found[1], found[2]), place + found.end()
        elif rest[0] == "\\" and len(rest) > 1:
            made, place = made + re.escape(rest[1]), place + 2
        else:
            made, place = made + re.escape(rest[0]), place + 1
    return made


def _class(negation: str, members: str) -> str:
    inner = re.sub(r"([\\\]\[^&|~])", r"\\\1", members)
    try:
        re.compile(f"[{inner}]")
    except re.error:  # such as [z-a], which is nothing
        return "(?!)"
    return f"(?!/)[^{inner}]" if negation else f"[{inner}]"
