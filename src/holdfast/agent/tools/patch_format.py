"""Parser of the patch format that models know best, and exact application.

    *** Begin Patch
    *** Update File: path            also: *** Add File, *** Delete File
    *** Move to: path
    @@ a line that the change comes after
     a context line
    -a removed line
    +an added line
    *** End of File
    *** End Patch

There is no fuzzy matching: context and removed lines must match exactly, in one place only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import islice
from typing import Final

from holdfast.agent.failures import ToolRefused
from holdfast.agent.text import well_formed
from holdfast.agent.tools.documents import Document, require_lossless

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _LAST = "*** Move to: ", "*** End of File"
# Models often add the line numbers of a unified diff. They are ignored: lines decide.
_NUMBERS: Final = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)? @@.*")


@dataclass(frozen=True, slots=True)
class PatchHunk:
    """Lines as (sign, text), to be found after the lines that `below` names."""

    lines: tuple[tuple[str, str], ...]
    below: tuple[str, ...] = ()
    is_last: bool = False

    @property
    def before(self) -> list[str]:
        """The context and removed lines."""
        return [text for sign, text in self.lines if sign != "+"]


@dataclass(frozen=True, slots=True)
class AddFile:
    """Create a file."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Delete a file."""

    path: str


@dataclass(frozen=True, slots=True)
class UpdateFile:
    """Change lines of a file, and optionally rename it."""

    path: str
    hunks: tuple[PatchHunk, ...]
    target: str | None = None


FilePatch = AddFile | DeleteFile | UpdateFile


def parsed_patch(text: str) -> list[FilePatch]:
    """Parse a patch; raises ToolRefused with the line number if it is not valid."""
    lines = [line.removesuffix("\r") for line in text.strip("\n").split("\n")]
    if lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise ToolRefused(reason=f"a patch begins with {_BEGIN!r} and ends with {_END!r}")
    reader = _Reader(lines[1:-1])
    found: list[FilePatch] = []
    while not reader.is_over:
        found.append(reader.file())
    if not found:
        raise ToolRefused(reason="the patch is empty")
    paths = [each.path for each in found]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise ToolRefused(reason=f"the patch is about {twice} twice")
    return found


def patched(path: str, document: Document, hunks: Sequence[PatchHunk]) -> Document:
    """Apply hunks in order; raises ToolRefused if one does not match."""
    texts, cursor = document.texts, 0
    changes: list[tuple[int, int, list[str]]] = []
    for number, hunk in enumerate(hunks, start=1):
        first = _place(f"change {number} in {path}", texts, hunk, cursor)
        changes += _changes(hunk, first)
        cursor = first + len(hunk.before)
    for first, beyond, lines in reversed(changes):
        require_lossless(path, texts[first:beyond], lines)
        document = document.replaced(first, beyond, lines)
    return document


@dataclass
class _Reader:
    lines: list[str]
    _at: int = field(default=0)

    @property
    def is_over(self) -> bool:
        return self._at >= len(self.lines)

    def file(self) -> FilePatch:
        head = self._next()
        if path := _after(head, _ADD):
            return AddFile(path, tuple(self._added()))
        if path := _after(head, _DELETE):
            return DeleteFile(path)
        if path := _after(head, _UPDATE):
            target = None if self.is_over else _after(self.lines[self._at], _MOVE)
            self._at += target is not None
            return UpdateFile(path, tuple(self._hunks(has_other=target is not None)), target)
        raise self._wrong(f"{head[:80]!r} begins no file")

    def _added(self) -> list[str]:
        found: list[str] = []
        while not self.is_over and not self.lines[self._at].startswith("*** "):
            line = self._next()
            if not line.startswith("+"):
                raise self._wrong("every line of a new file begins with +")
            found.append(line[1:])
        return found

    def _hunks(self, *, has_other: bool) -> list[PatchHunk]:
        found: list[PatchHunk] = []
        while not self.is_over and not self.lines[self._at].startswith("*** "):
            found.append(self._hunk())
        if not found and not has_other:
            raise self._wrong("nothing in it is to be changed")
        return found

    def _hunk(self) -> PatchHunk:
        below: list[str] = []
        while not self.is_over and self.lines[self._at].startswith("@@"):
            word = self._next()[2:].strip()
            if word and not _NUMBERS.fullmatch(word):
                below.append(word)
        lines: list[tuple[str, str]] = []
        while not self.is_over and self.lines[self._at][:1] in ("", " ", "-", "+"):
            line = self._next() or " "  # models omit the blank of an empty context line
            lines.append((line[0], line[1:]))
        if all(sign == " " for sign, _ in lines):
            self._at += not lines
            raise self._wrong("a change needs lines that begin with - or +")
        is_last = not self.is_over and self.lines[self._at].strip() == _LAST
        self._at += is_last
        return PatchHunk(tuple(lines), tuple(below), is_last)

    def _next(self) -> str:
        self._at += 1
        return self.lines[self._at - 1]

    def _wrong(self, why: str) -> ToolRefused:
        return ToolRefused(reason=f"line {self._at + 1} of the patch: {why}")


def _after(line: str, head: str) -> str | None:
    return line.removeprefix(head).strip() or None if line.startswith(head) else None


def _place(name: str, texts: Sequence[str], hunk: PatchHunk, cursor: int) -> int:
    """Return the index where a hunk matches; raises ToolRefused unless there is exactly one.

    Lines are compared as the model saw them: bytes that are not UTF-8 as U+FFFD.
    """
    texts = list(map(well_formed, texts))
    for word in hunk.below:
        found = [n for n in range(cursor, len(texts)) if texts[n].strip() == word]
        if not found:
            raise ToolRefused(reason=f"{name}: there is no line {word!r} from line {cursor + 1} on")
        cursor = found[0] + 1
    before = hunk.before
    if not before:
        return cursor if hunk.below and not hunk.is_last else len(texts)
    last = len(texts) - len(before)
    places = [last] if hunk.is_last else list(range(cursor, last + 1))
    fits = [n for n in places if cursor <= n and list(texts[n : n + len(before)]) == before]
    if not fits:
        raise ToolRefused(
            reason=f"{name}: {before[0]!r} and the {len(before) - 1} lines after it are not there "
            f"to the letter from line {cursor + 1} on; read the file again"
        )
    if len(fits) > 1 and not hunk.below:
        raise ToolRefused(
            reason=f"{name}: it fits at lines {fits[0] + 1} and {fits[1] + 1}; give more lines "
            "around it, or an @@ line before it"
        )
    return fits[0]


def _changes(hunk: PatchHunk, first: int) -> list[tuple[int, int, list[str]]]:
    """Return the replaced ranges and their new lines; context lines are not rewritten."""
    found: list[tuple[int, int, list[str]]] = []
    at, was_staying = first, True
    for sign, text in hunk.lines:
        if sign == " ":
            at, was_staying = at + 1, True
            continue
        if was_staying:
            found.append((at, at, []))
        start, beyond, lines = found[-1]
        if sign == "-":
            at += 1
            found[-1] = (start, beyond + 1, lines)
        else:
            lines.append(text)
        was_staying = False
    return found


# Unified diff in bounded time.

# Lines of both sides. difflib is quadratic, so longer texts are shown as one change.
_COMPARED_MAX: Final = 400
_AROUND: Final = 3


def diff(path: str, before: Sequence[str] | None, after: Sequence[str] | None) -> str:
    """Return a unified diff; None is a missing file."""
    old, new = list(before or ()), list(after or ())
    heads = [
        "--- /dev/null" if before is None else f"--- a/{path}",
        "+++ /dev/null" if after is None else f"+++ b/{path}",
    ]
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    above = max(0, first - _AROUND)
    below = max(0, last - _AROUND)
    old, new = old[above : len(old) - below], new[above : len(new) - below]
    lead, tail = first - above, last - below
    if len(old) + len(new) <= _COMPARED_MAX:
        hunks = _compared(old, new, lead, tail)
        return "\n".join([*heads, *(_moved(line, above) for line in hunks)])
    body = [
        _hunk(above, len(old), len(new)),
        *(f" {line}" for line in old[:lead]),
        *(f"-{line}" for line in old[lead : len(old) - tail]),
        *(f"+{line}" for line in new[lead : len(new) - tail]),
        *(f" {line}" for line in old[len(old) - tail :]),
    ]
    return "\n".join([*heads, *body])


def bounded(text: str, *, chars_max: int) -> str:
    """Truncate text to `chars_max` characters, with a note about the rest."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n… ({len(text) - chars_max} more characters)"


def _compared(old: list[str], new: list[str], lead: int, tail: int) -> Iterator[str]:
    """Yield hunks, with the common prefix and suffix outside of them.

    Otherwise difflib may report a change at lines further down, with less context than `patch`
    needs.
    """
    # Placeholders that no real line can equal, since lines contain no newline.
    above = [f"\n<{number}" for number in range(lead)]
    below = [f"\n>{number}" for number in range(tail)]
    around = dict(zip(above + below, old[:lead] + old[len(old) - tail :], strict=True))
    hunks = unified_diff(
        above + old[lead : len(old) - tail] + below,
        above + new[lead : len(new) - tail] + below,
        n=_AROUND,
        lineterm="",
    )
    for line in islice(hunks, 2, None):
        yield line[0] + around.get(line[1:], line[1:])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _moved(line: str, by: int) -> str:
    """Shift the line numbers of a hunk header; return other lines unchanged."""
    if not by or not line.startswith("@@ "):
        return line
    _, old, new, _ = line.split(" ", 3)
    return f"@@ -{_shifted(old[1:], by)} +{_shifted(new[1:], by)} @@"


def _shifted(span: str, by: int) -> str:
    first, comma, count = span.partition(",")
    return f"{int(first) + by}{comma}{count}"


def _hunk(above: int, old: int, new: int) -> str:
    first_old, first_new = (above + (1 if count else 0) for count in (old, new))
    return f"@@ -{first_old},{old} +{first_new},{new} @@"
