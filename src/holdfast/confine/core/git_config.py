"""Read from a git configuration which other files git runs or obeys; nothing of git is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import join, normpath
from typing import Final, NamedTuple

_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b"}
_INCLUDING: Final = ("include", "includeif")


class Obeyed(NamedTuple):
    """A path that git runs or obeys because a configuration says so, and by which key."""

    path: str
    key: str


def obeyed_paths(content: bytes, *, directory: str, worktree: str) -> tuple[Obeyed, ...]:
    """Where a configuration has git look for hooks and for more configuration, absolute.

    `directory` is the one that it is in, `worktree` the one in which git runs hooks. Paths in a
    home or beside the program of git are not among them.
    """
    found: list[Obeyed] = []
    for section, key, value in _settings(content.decode("utf-8", "surrogateescape")):
        if not value or value.startswith(("~", "%(")):
            continue
        if (section, key) == ("core", "hookspath"):
            found.append(Obeyed(normpath(join(worktree, value)), "core.hooksPath"))
        elif section in _INCLUDING and key == "path":
            found.append(Obeyed(normpath(join(directory, value)), "include.path"))
    return tuple(found)


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of each line, without subsections; keys in lower case."""
    section = ""
    for line in _joined(text):
        rest = line
        head = _SECTION.match(rest)
        if head is not None:
            section, rest = head[1].lower(), rest[head.end() :]
        key = _KEY.match(rest)
        if key is not None:
            yield section, key[1].lower(), _value(key[2] or "")


def _joined(text: str) -> Iterator[str]:
    """Lines, of which those that end with a backslash go on in the next."""
    waiting = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            waiting += line[:-1]
            continue
        yield waiting + line
        waiting = ""
    if waiting:
        yield waiting


def _value(raw: str) -> str:
    """A value without quotes, escapes, comments and spaces around it."""
    found = ""
    kept = 0  # what is before this place is kept, also if it is a space
    is_quoted = False
    characters = iter(raw)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            found += _ESCAPES.get(following, following)
            kept = len(found)
        elif character == '"':
            is_quoted = not is_quoted
            kept = len(found)
        elif character in "#;" and not is_quoted:
            break
        else:
            found += character
            kept = len(found) if is_quoted else kept
    return found[:kept] + found[kept:].rstrip()
