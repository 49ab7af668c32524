"""Read from git configurations which other files git runs or obeys, without running git.

The grammar is that of git's `config.c`. A file that git accepts is read as git reads it. One
malformed line makes git refuse the whole file; here only that line is skipped, because it may be
repaired later, and other implementations of git accept more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from posixpath import dirname, join, normpath
from typing import Final, NamedTuple

# Possessive quantifiers: the time stays linear in the size of hostile input.
_BLANK: Final = re.compile(r"[ \t\r\n]*+(?:[#;][^\n]*+\n[ \t\r\n]*+)*+")
_SECTION: Final = re.compile(
    r'\[[ \t\r]*+([A-Za-z0-9.-]*+)[ \t\r]*+(?:"((?:[^"\\\n]|\\[^\n])*+)"[ \t\r]*+)?\]'
)
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*+)[ \t\r]*+(?:=|(?=\n))")
_SPACES: Final = " \t\r"
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b"}
_INCLUDING: Final = ("include", "includeif")
_HOOKS, _INCLUDE = "core.hooksPath", "include.path"
_POINTER: Final = b"gitdir:"  # begins a `.git` that is a file, of a worktree or a submodule
_FILES_MAX: Final = 32

Read = Callable[[str], bytes]
"""The content of a file by its absolute path; nothing where it is not a file."""


class Obeyed(NamedTuple):
    """A path that git runs or obeys because a configuration says so, and by which key."""

    path: str
    key: str

    @property
    def is_configuration(self) -> bool:
        """Whether it is a file with more configuration, and not a directory with hooks."""
        return self.key == _INCLUDE


def obeyed_in(worktree: str, read: Read, *, home: str, shared: Sequence[str]) -> tuple[Obeyed, ...]:
    """What git runs or obeys in a worktree, by all configuration that it reads there.

    That is the configuration of the repository, `shared` files, as those of the person, and all
    that they include.
    """
    ahead, seen = [*shared, *_configurations(worktree, read)], set[str]()
    found: dict[Obeyed, None] = {}
    while ahead and len(seen) < _FILES_MAX:
        path = ahead.pop()
        if path in seen:
            continue
        seen.add(path)
        some = obeyed_paths(read(path), directory=dirname(path), worktree=worktree, home=home)
        found |= dict.fromkeys(some)
        ahead += [each.path for each in some if each.is_configuration]
    return tuple(found)


def _configurations(worktree: str, read: Read) -> tuple[str, str]:
    """Where the repository of a worktree has its configuration; `.git` may point to it."""
    own = common = f"{worktree}/.git"
    pointer = read(own)
    if pointer.startswith(_POINTER):
        own = common = _pointed(worktree, pointer.removeprefix(_POINTER).lstrip(b" "))
    if pointer := read(f"{own}/commondir"):
        common = _pointed(own, pointer)
    return f"{common}/config", f"{own}/config.worktree"


def _pointed(directory: str, content: bytes) -> str:
    return _absolute(directory, content.rstrip(b"\r\n").decode("utf-8", "surrogateescape"))


def obeyed_paths(content: bytes, *, directory: str, worktree: str, home: str) -> tuple[Obeyed, ...]:
    """Where a configuration has git look for hooks and for more configuration, absolute.

    `directory` is the one that it is in, `worktree` the one in which git runs hooks, `home` that
    of the person. Paths in the homes of others or beside the program of git are not among them.
    """
    found: dict[Obeyed, None] = {}
    for section, key, told in _settings(content.decode("utf-8", "surrogateescape")):
        value = home + told[1:] if told == "~" or told.startswith("~/") else told
        if not value or value.startswith(("~", "%(")):
            continue
        if (section, key) == ("core", "hookspath"):
            found[Obeyed(_absolute(worktree, value), _HOOKS)] = None
        elif section in _INCLUDING and key == "path":
            found[Obeyed(_absolute(directory, value), _INCLUDE)] = None
    return tuple(found)


def _absolute(directory: str, path: str) -> str:
    return "/" + normpath(join(directory, path)).lstrip("/")  # normpath keeps two leading slashes


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of each setting, without subsections; keys in lower case.

    A setting that versions of git read differently comes once for each reading.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n") + "\n"
    base = ""
    at = _end(_BLANK, text, 0)
    while at < len(text):
        if (head := _SECTION.match(text, at)) is not None:
            subsection = re.sub(r"\\(.)", r"\1", head[2] or "")
            base, at = f"{head[1].lower()}.{subsection}", head.end()
        elif (key := _KEY.match(text, at)) is not None:
            values, at = _values(text, key.end())
            # Git passes names on as C strings: NUL ends one.
            name = f"{base}.{key[1].lower()}".partition("\0")[0]
            for value in values:
                yield name.partition(".")[0], name.rpartition(".")[2], value.partition("\0")[0]
        else:
            at = text.index("\n", at)  # git refuses the file
        at = _end(_BLANK, text, at)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _values(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The readings of the value that begins at an index, and the index of its end.

    Git from 2.45 keeps white space inside a value; before, each such character became a space.
    Unknown escapes and an open quote, for which git refuses the file, are read literally.
    """
    verbatim: list[str] = []
    spaces: list[str] = []  # dropped at the end of a value, kept before anything else
    blanked: list[str] = []
    is_quoted = False
    while (character := text[at : at + 1]) not in ("", "\n"):
        if not is_quoted:
            if character in _SPACES:
                spaces += character if verbatim else ""
                at += 1
                continue
            if character in "#;":
                at = text.index("\n", at)
                break
        verbatim += spaces
        blanked += " " * len(spaces)
        spaces.clear()
        at += 1
        if character == '"':
            is_quoted = not is_quoted
            continue
        if character == "\\":
            escaped = text[at : at + 1]
            character = "" if escaped == "\n" else _ESCAPES.get(escaped, escaped)
            at += 1
        verbatim += character
        blanked += character
    return tuple(dict.fromkeys(("".join(verbatim), "".join(blanked)))), at
