"""Parser and formatter of ripgrep's results, globs and ignore rules."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from holdfast.agent.text import PAGE_MAX
from holdfast.agent.tools.documents import tagged
from holdfast.nouns import RelativePath

# Globs of searches and of `.gitignore` files.


def matcher(glob: str) -> re.Pattern[str]:
    """Compile a glob; without a slash it matches the file name alone.

    `*` and `?` do not match slashes, `**` does, `{a,b}` is an alternative.
    """
    anchored = glob.lstrip("/")
    prefix = "" if "/" in glob else "(?:.*/)?"
    return re.compile(prefix + _braced(anchored), re.DOTALL)


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of a `.gitignore`, for paths below its directory."""

    pattern: re.Pattern[str]
    ignores: bool
    only_directories: bool


def rules_in(text: str) -> tuple[IgnoreRule, ...]:
    """Parse a `.gitignore`."""
    found = (_rule(line) for line in text.split("\n"))
    return tuple(rule for rule in found if rule is not None)


def is_ignored(rules: tuple[IgnoreRule, ...], path: str, *, is_directory: bool) -> bool | None:
    """Return what the last matching rule says, or None without a match."""
    for rule in reversed(rules):
        if (is_directory or not rule.only_directories) and rule.pattern.fullmatch(path):
            return rule.ignores
    return None


def _rule(line: str) -> IgnoreRule | None:
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
    return IgnoreRule(re.compile(prefix + regex, re.DOTALL), ignores, only_directories)


def _trimmed(line: str) -> str:
    """Strip trailing blanks, unless escaped by a backslash."""
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    return line


def _braced(glob: str) -> str:
    """Translate a glob with braces to a regular expression; `{a}` is literal."""
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
    """Translate a glob without braces to a regular expression."""
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
    except re.error:  # an invalid range such as [z-a] matches nothing
        return "(?!)"
    return f"(?!/)[^{inner}]" if negation else f"[{inner}]"


class _Data(msgspec.Struct, frozen=True):
    """ripgrep's encoding of text, or base64 bytes if it is not UTF-8."""

    text: str | None = None
    encoded: str = msgspec.field(name="bytes", default="")

    @property
    def raw(self) -> bytes:
        if self.text is not None:
            return self.text.encode("utf-8", "surrogatepass")
        return b64decode(self.encoded)


class _Body(msgspec.Struct, frozen=True):
    path: _Data | None = None
    lines: _Data = _Data(text="")
    line_number: int | None = None
    binary_offset: int | None = None


class _Message(msgspec.Struct, frozen=True):
    type: str
    data: _Body


_read = msgspec.json.Decoder(_Message).decode


@dataclass
class SearchResults:
    """Results so far; `is_full` when the limit is reached."""

    limit: int
    glob: str | None = None
    matches: int = 0
    files: int = 0
    is_full: bool = False
    _shown: list[str] = field(default_factory=list[str])
    _pending: list[tuple[int, str, bool]] = field(default_factory=list[tuple[int, str, bool]])
    _chars: int = 0

    def take_line(self, line: bytes) -> None:
        """Add a JSON message of a content search; unreadable ones are skipped."""
        try:
            message = _read(line)
        except msgspec.MsgspecError:
            return
        match message.type:
            case "begin":
                self._pending = []
            case "match" | "context" if message.data.line_number is not None:
                text = message.data.lines.raw.decode("utf-8", "surrogateescape")
                text = text.removesuffix("\n").removesuffix("\r")
                self._pending.append((message.data.line_number, text, message.type == "match"))
            case "end" if message.data.path is not None:
                if message.data.binary_offset is None and self._pending:
                    self._take_file(path_in(message.data.path.raw), self._pending)
                self._pending = []
            case _:
                pass

    def take_path(self, raw: bytes) -> None:
        """Add a path of a name search."""
        path = path_in(raw)
        if path is None or self.is_full or not self._is_wanted(path):
            return
        if self.files >= self.limit:
            self.is_full = True
            return
        self.files += 1
        self._show(str(path))

    def text(self) -> str:
        """Format all results for the model."""
        if not self._shown:
            return "nothing was found"
        more = "\n(there is more: narrow it down, or raise the limit)" if self.is_full else ""
        return "\n".join(self._shown) + more

    def _take_file(self, path: RelativePath | None, lines: list[tuple[int, str, bool]]) -> None:
        if path is None or self.is_full or not self._is_wanted(path):
            return
        if self.matches >= self.limit:
            self.is_full = True
            return
        self.files += 1
        if self._shown:
            self._show("")
        self._show(str(path))
        before = 0
        for number, text, is_match in lines:
            if is_match and self.matches >= self.limit:
                self.is_full = True
            if self.is_full:
                return
            self.matches += is_match
            if before and number != before + 1:
                self._show("  …")
            before = number
            self._show(f"{'>' if is_match else ' '} {tagged([text], number)[0]}")

    def _show(self, line: str) -> None:
        self._chars += len(line) + 1
        if self._chars > PAGE_MAX:
            self.is_full = True
        else:
            self._shown.append(line)

    def _is_wanted(self, path: RelativePath) -> bool:
        if self.glob is None:
            return True
        spelled = path.raw.decode("utf-8", "surrogateescape")
        return matcher(self.glob).fullmatch(spelled) is not None


def path_in(raw: bytes) -> RelativePath | None:
    """Return the path relative to the project, or None if it is not valid."""
    raw = raw.removeprefix(b"./")
    return RelativePath.of(raw) if raw else None


# Matching lines with context, in the form of ripgrep.


class LineMatch(NamedTuple):
    """A matching line, or a context line; numbered from 1."""

    number: int
    text: str
    is_match: bool


def compiled(pattern: str, *, is_literal: bool, ignores_case: bool) -> re.Pattern[str]:
    """Compile a pattern for lines; raises re.error if it is not valid."""
    return re.compile(re.escape(pattern) if is_literal else pattern, re.I if ignores_case else 0)


def hits_in(data: bytes, pattern: re.Pattern[str], *, around: int) -> Iterator[LineMatch]:
    """Yield matching lines and their context, each once, in order."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if not lines[-1]:
        lines.pop()
    texts = [line.removesuffix("\r") for line in lines]
    matching = [number for number, text in enumerate(texts) if pattern.search(text)]
    shown, matches = -1, set(matching)
    for number in matching:
        first = max(shown + 1, number - around)
        beyond = min(len(texts), number + around + 1)
        for near in range(first, beyond):
            yield LineMatch(near + 1, texts[near], near in matches)
        shown = max(shown, beyond - 1)
