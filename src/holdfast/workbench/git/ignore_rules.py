"""Evaluate `.gitignore` rules as git does, without git: nothing of a repository is run.

A rule is a glob. Without a slash, except at its end, it is compared with the last name of a path,
else with the whole path below the directory of its file. It is compared name by name, so that no
rule takes more than linear time in each name, however many stars an agent puts into it. The last
matching rule wins; files in deeper directories take precedence; everything below an ignored
directory is ignored.

Tracked paths are read from git's index file:

    DIRC | version 4 | entries 4 | entry... | extension... | checksum

An entry is 40 bytes about the file, the id of its content, flags with the length of the name,
perhaps further flags, and the name, ended by a NUL. In versions 2 and 3 entries are padded to a
multiple of 8; in version 4 a name begins with how many bytes of the last one are dropped. A split
index has the extension `link` with the id of a second file. A sparse index has directories, ended
by a slash.

Decision: docs/decisions/0175-ignore-rules-without-git.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct, error
from typing import Final

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import above_of
from holdfast.workbench.model import PathChange, PathEntry

_ANY: Final = b"**"
_POSIX: Final = {
    b"alnum": rb"a-zA-Z0-9",
    b"alpha": rb"a-zA-Z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb" \t\n\r\f\v",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9a-fA-F",
}
_NEVER: Final = rb"(?!)"
Parts = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One rule: the globs of its path components.

    `is_anchored`: matched against the whole path below the rule file, else against the last
    component.
    """

    globs: Parts
    is_anchored: bool
    is_negated: bool = False
    is_for_directories: bool = False

    def matches(self, below: Parts, *, is_directory: bool) -> bool:
        """Whether a path, relative to the rule file, matches."""
        if self.is_for_directories and not is_directory:
            return False
        if not self.is_anchored:
            return _compiled(self.globs[0])(below[-1])
        return _fits(self.globs, below)


def parse_rules(content: bytes) -> tuple[IgnoreRule, ...]:
    """Parse one file, in order."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = (_parsed(line.removesuffix(b"\r")) for line in lines)
    return tuple(each for each in found if each is not None)


def verdict(rules: Sequence[IgnoreRule], below: Parts, *, is_directory: bool) -> bool | None:
    """Whether rules of one file ignore a path; None if none matches."""
    for rule in reversed(rules):
        if rule.matches(below, is_directory=is_directory):
            return not rule.is_negated
    return None


class IgnoreRules:
    """All rules of a project.

    `rules_in` returns the rules of the `.gitignore` in a directory, () for the root; `also` are
    those of `.git/info/exclude`. Tracked paths, and directories that contain any, are not ignored.
    """

    def __init__(
        self,
        rules_in: Callable[[Parts], Sequence[IgnoreRule]],
        *,
        also: Sequence[IgnoreRule] = (),
        tracked: Collection[Parts] = (),
    ) -> None:
        self._rules_in, self._also = lru_cache(maxsize=None)(rules_in), also
        self._tracked = frozenset(tracked)
        self._holding = {path[:count] for path in self._tracked for count in range(1, len(path))}
        self._directories: dict[Parts, bool] = {(): False}

    def is_ignored(self, path: RelativePath, *, is_directory: bool) -> bool:
        """Whether git would not list an untracked path."""
        parts = path.parts
        if parts in self._tracked or (is_directory and parts in self._holding):
            return False
        if any(parts[:count] in self._tracked for count in range(1, len(parts))):
            # A submodule: the repository above does not look into it.
            return False
        return self._is_below(parts[:-1]) or self._speaks_of(parts, is_directory=is_directory)

    def _is_below(self, parts: Parts) -> bool:
        """Whether a directory or one of its ancestors is ignored."""
        known = self._directories.get(parts)
        if known is None:
            known = self._is_below(parts[:-1]) or self._speaks_of(parts, is_directory=True)
            self._directories[parts] = known
        return known

    def _speaks_of(self, parts: Parts, *, is_directory: bool) -> bool:
        for depth in range(len(parts) - 1, -1, -1):
            rules = self._rules_in(parts[:depth])
            said = verdict(rules, parts[depth:], is_directory=is_directory)
            if said is not None:
                return said
        return bool(verdict(self._also, parts, is_directory=is_directory))


def ignored_changes(
    changes: Sequence[PathChange], is_ignored: Callable[[RelativePath, PathEntry], bool]
) -> frozenset[RelativePath]:
    """Return changes that concern only ignored files, so that the rest is consistent without them.

    Deletions together with a directory that is not ignored stay with it. A new directory with only
    ignored entries is ignored, as in git.
    """
    every = {change.path: change for change in changes}
    found = {
        path
        for path, change in every.items()
        if all(is_ignored(path, one) for one in (change.before, change.after) if one is not None)
    }
    closed = {path for path, change in every.items() if path not in found and _closes(change)}
    if closed:
        found -= {path for path in found if any(above in closed for above in above_of(path))}
    inside: dict[RelativePath, list[RelativePath]] = {}
    for path in every:
        if path.parent is not None:
            inside.setdefault(path.parent, []).append(path)
    new = [path for path, one in every.items() if one.before is None and _is_directory(one.after)]
    for path in sorted(new, key=lambda path: -len(path.parts)):
        if path in inside and found.issuperset(inside[path]):
            found.add(path)
    return frozenset(found)


def folded(paths: Collection[RelativePath]) -> Mapping[str, int]:
    """Count paths by top-level directory; `.` is the root."""
    counts: dict[str, int] = {}
    tops = {path.parts[0] for path in paths if len(path.parts) > 1}
    for path in sorted(paths):
        top = path.parts[0]
        name = str(RelativePath((top,))) if top in tops else "."
        counts[name] = counts.get(name, 0) + 1
    return counts


def _closes(change: PathChange) -> bool:
    return _is_directory(change.before) and not _is_directory(change.after)


def _is_directory(entry: PathEntry | None) -> bool:
    return entry is not None and entry.is_directory


def _parsed(line: bytes) -> IgnoreRule | None:
    if line.startswith(b"#"):
        return None
    text = _without_spaces(line)
    is_negated = text.startswith(b"!")
    text = text.removeprefix(b"!") if is_negated else text
    is_for_directories = text.endswith(b"/")
    text = text[:-1] if is_for_directories else text
    if not text:
        return None
    is_anchored = b"/" in text
    globs = tuple(_names(text.removeprefix(b"/"))) if is_anchored else (text,)
    return IgnoreRule(globs, is_anchored, is_negated, is_for_directories)


def _without_spaces(line: bytes) -> bytes:
    """Strip trailing spaces, except after a backslash."""
    end = len(line)
    while end and line[end - 1 : end] == b" ":
        backslashes = len(line[: end - 1]) - len(line[: end - 1].rstrip(b"\\"))
        if backslashes % 2:
            break
        end -= 1
    return line[:end]


def _names(text: bytes) -> Iterator[bytes]:
    """Split a pattern at slashes, except those in brackets."""
    start = at = 0
    while at < len(text):
        if text[at : at + 1] == b"\\":
            at += 2
        elif text[at : at + 1] == b"[" and (end := _class_end(text, at)) is not None:
            at = end
        elif text[at : at + 1] == b"/":
            yield text[start:at]
            start = at = at + 1
        else:
            at += 1
    yield text[start:]


def _fits(globs: Parts, names: Parts) -> bool:
    """Match a path against globs, where `**` matches any number of directories."""
    # How many globs can stand for the names so far.
    reached = {0}
    for place, name in enumerate(names):
        is_last = place == len(names) - 1
        following: set[int] = set()
        for count in _onward(globs, reached):
            if globs[count : count + 1] == (_ANY,):
                following.add(count + 1 if count + 1 == len(globs) and is_last else count)
            elif count < len(globs) and _compiled(globs[count])(name):
                following.add(count + 1)
        reached = following
    return len(globs) in reached


def _onward(globs: Parts, reached: set[int]) -> set[int]:
    """Positions reachable if each `**` matches nothing."""
    found = set(reached)
    for count in reached:
        here = count
        while here < len(globs) - 1 and globs[here] == _ANY:
            here += 1
            found.add(here)
    return found


@lru_cache(maxsize=4096)
def _compiled(glob: bytes) -> Callable[[bytes], bool]:
    """Compile a glob to a predicate."""
    pattern = re.compile(_translated(glob), re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


def _translated(glob: bytes) -> bytes:
    """Translate a glob of one component.

    Parts between stars become atomic groups: the first match is as good as any, so there is no
    backtracking.
    """
    pieces: list[bytes] = [b""]
    at = 0
    while at < len(glob):
        character = glob[at : at + 1]
        if character == b"*":
            pieces.append(b"")
            at += 1
            continue
        if character == b"\\" and at + 1 == len(glob):
            return _NEVER
        if character == b"[":
            end = _class_end(glob, at)
            if end is None:
                return _NEVER
            pieces[-1] += _class(glob[at:end])
            at = end
            continue
        if character == b"\\":
            at += 1
            pieces[-1] += re.escape(glob[at : at + 1])
        else:
            pieces[-1] += b"." if character == b"?" else re.escape(character)
        at += 1
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + b"".join(b"(?>.*?%s)" % each for each in middle if each) + b".*" + last


def _class_end(glob: bytes, start: int) -> int | None:
    """End of a bracket expression; None if it is not closed."""
    at = start + 1
    if glob[at : at + 1] in (b"!", b"^"):
        at += 1
    is_first = True
    while at < len(glob):
        character = glob[at : at + 1]
        if character == b"]" and not is_first:
            return at + 1
        is_first = False
        if character == b"\\":
            at += 2
        elif glob[at : at + 2] == b"[:" and (end := glob.find(b":]", at + 2)) != -1:
            at = end + 2
        else:
            at += 1
    return None


def _class(text: bytes) -> bytes:
    """Translate a bracket expression."""
    inside = text[1:-1]
    is_negated = inside[:1] in (b"!", b"^")
    inside = inside[1:] if is_negated else inside
    found: list[bytes] = []
    at = 0
    while at < len(inside):
        if inside[at : at + 2] == b"[:" and (end := inside.find(b":]", at + 2)) != -1:
            known = _POSIX.get(inside[at + 2 : end])
            if known is None:
                return _NEVER
            found.append(known)
            at = end + 2
            continue
        low, at = _member(inside, at)
        if inside[at : at + 1] == b"-" and at + 1 < len(inside):
            high, at = _member(inside, at + 1)
            if low <= high:
                found.append(b"\\x%02x-\\x%02x" % (low, high))
            continue
        found.append(b"\\x%02x" % low)
    if not found:
        return b"." if is_negated else _NEVER
    return b"[%s%s]" % (b"^" if is_negated else b"", b"".join(found))


def _member(inside: bytes, at: int) -> tuple[int, int]:
    """Character at a position of a bracket expression, and the next position."""
    if inside[at : at + 1] == b"\\" and at + 1 < len(inside):
        at += 1
    return inside[at], at + 1


_HEAD: Final = Struct(">4sII")
# Bytes of an entry: times, device, inode, mode, owner, size.
_BEFORE_ID: Final = 40
# SHA-1, SHA-256: only the settings of the repository say which.
_ID_SIZES: Final = (20, 32)
_EXTENDED: Final = 0x4000
# Also of all names that are longer.
_LENGTH: Final = 0x0FFF
# The version in which names are shortened.
_PREFIXED: Final = 4
_EXTENSION: Final = Struct(">4sI")


@dataclass(frozen=True, slots=True)
class TrackedPaths:
    """Paths in an index; `shared` is the id of the shared index of a split one."""

    paths: frozenset[bytes] = frozenset()
    shared: str = ""


def tracked_in(data: bytes) -> TrackedPaths | None:
    """Parse an index; None if it is not readable."""
    for id_bytes in _ID_SIZES:
        try:
            return _tracked(data, id_bytes)
        except (error, IndexError, ValueError):
            continue
    return None


def _tracked(data: bytes, id_bytes: int) -> TrackedPaths:
    sign, version, count = _HEAD.unpack_from(data)
    if sign != b"DIRC" or version not in (2, 3, _PREFIXED):
        raise ValueError("not an index")
    found: set[bytes] = set()
    at, name = _HEAD.size, b""
    for _ in range(count):
        flags_at = at + _BEFORE_ID + id_bytes
        flags = data[flags_at] << 8 | data[flags_at + 1]
        name, at = _named(data, at, flags_at + (4 if flags & _EXTENDED else 2), name, version)
        if len(name) < _LENGTH and len(name) != flags & _LENGTH:
            raise ValueError("ids of another size")
        found.add(name.rstrip(b"/"))
    extensions = _extensions(data, at, len(data) - id_bytes)
    shared = next((body for kind, body in extensions if kind == b"link"), b"")
    return TrackedPaths(frozenset(found - {b""}), shared[:id_bytes].hex())


def _named(data: bytes, start: int, at: int, last: bytes, version: int) -> tuple[bytes, int]:
    """Name of an entry, and the offset of the next one."""
    if version == _PREFIXED:
        dropped, at = _number(data, at)
        end = data.index(b"\0", at)
        return last[: len(last) - dropped] + data[at:end], end + 1
    end = data.index(b"\0", at)
    return data[at:end], start + (end - start + 8) // 8 * 8


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Decode a variable-length integer, as in pack offsets."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _extensions(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    while at + _EXTENSION.size <= end:
        kind, size = _EXTENSION.unpack_from(data, at)
        at += _EXTENSION.size
        yield kind, data[at : at + size]
        at += size
