"""Text files as lines, edited without changing any other byte.

Bytes that are not UTF-8 are held as surrogate escapes and written back unchanged. Every line keeps
its own ending; new lines get the most frequent one.

Edits name lines by number and hash, so that an edit of changed lines can be refused. A line is
shown as `12:a3f0|text`. The four hex digits hash the whole line including its indentation, because
indentation is significant in many languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Final

from holdfast.agent.failures import EditStale, ToolRefused
from holdfast.agent.text import REPLACEMENT, is_well_formed, well_formed

_BOM: Final = b"\xef\xbb\xbf"
_SNIFFED_BYTES: Final = 8192
_LF, _CRLF = "\n", "\r\n"


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line and its ending, which is empty only for the last line."""

    text: str
    ending: str = _LF


@dataclass(frozen=True, slots=True)
class Document:
    """A text file: its lines, and whether it starts with a byte order mark."""

    lines: tuple[TextLine, ...]
    has_mark: bool = False

    @property
    def texts(self) -> list[str]:
        """The lines without their endings."""
        return [line.text for line in self.lines]

    @property
    def ending(self) -> str:
        """The most frequent line ending."""
        carriages = sum(line.ending == _CRLF for line in self.lines)
        return _CRLF if carriages * 2 > len(self.lines) else _LF

    def encoded(self) -> bytes:
        """Return the bytes of the file."""
        whole = "".join(line.text + line.ending for line in self.lines)
        return (_BOM if self.has_mark else b"") + whole.encode("utf-8", "surrogateescape")

    def replaced(self, first: int, beyond: int, texts: Sequence[str]) -> Document:
        """Replace lines `first` to `beyond` (exclusive, from 0); a final newline stays as it is.

        Equal indexes only insert.
        """
        ending = self.ending
        lines = [
            *self.lines[:first],
            *(TextLine(text, ending) for text in texts),
            *self.lines[beyond:],
        ]
        is_open = bool(self.lines) and self.lines[-1].ending == ""
        closed = [TextLine(line.text, line.ending or ending) for line in lines]
        if is_open and closed:
            closed[-1] = TextLine(closed[-1].text, "")
        return Document(tuple(closed), self.has_mark)


def parsed(data: bytes) -> Document:
    """Decode a file."""
    has_mark = data.startswith(_BOM)
    whole = data[len(_BOM) if has_mark else 0 :].decode("utf-8", "surrogateescape")
    pieces = whole.split(_LF)
    last = pieces.pop()
    lines = [
        TextLine(piece[:-1], _CRLF) if piece.endswith("\r") else TextLine(piece, _LF)
        for piece in pieces
    ]
    if last:
        lines.append(TextLine(last, ""))
    return Document(tuple(lines), has_mark)


def lines_in(text: str) -> list[str]:
    """Split text into lines; a final newline makes no difference."""
    if not text:
        return []
    return [line.removesuffix("\r") for line in text.removesuffix(_LF).split(_LF)]


def restyled(text: str, like: Document | None) -> bytes:
    """Encode text with the byte order mark and line endings of the file it replaces."""
    if like is None or not (like.has_mark or like.ending == _CRLF):
        return text.encode("utf-8", "surrogateescape")
    made = parsed(text.encode("utf-8", "surrogateescape"))
    lines = tuple(TextLine(line.text, line.ending and like.ending) for line in made.lines)
    return Document(lines, like.has_mark or made.has_mark).encoded()


def require_lossless(path: str, removed: Iterable[str], added: Iterable[str]) -> None:
    """Raise ToolRefused if bytes that are not UTF-8 would be replaced by U+FFFD.

    A model is shown such bytes as U+FFFD, and repeats what it was shown.
    """
    if any(REPLACEMENT in line for line in added) and not all(map(is_well_formed, removed)):
        raise ToolRefused(
            reason=f"{path} is not UTF-8: bytes shown as {REPLACEMENT} in these lines would be "
            f"lost. Nothing was changed. Edit other lines, leave out {REPLACEMENT}, or change "
            "the bytes with a shell command"
        )


def is_binary(data: bytes) -> bool:
    """Whether the bytes are not readable as text."""
    return b"\0" in data[:_SNIFFED_BYTES]


DIGITS: Final = 4
_ANCHOR: Final = re.compile(rf"\s*(\d{{1,9}}):([0-9a-f]{{{DIGITS}}})(?:\|.*)?\s*", re.DOTALL)
_LINE_CHARS_MAX: Final = 2000
_AROUND: Final = 3
_SHOWN_MAX: Final = 200


class EditOperation(StrEnum):
    """What an edit does with its lines."""

    REPLACE = "replace"
    INSERT_BEFORE = "insert_before"
    INSERT_AFTER = "insert_after"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Anchor:
    """A line by number (from 1) and hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class LineEdit:
    """An edit of a range of lines, both ends inclusive."""

    start: Anchor
    through: Anchor
    operation: EditOperation
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """A range of lines in the new text, from 0, end exclusive."""

    first: int
    beyond: int


def hash_of(text: str) -> str:
    """Return the hash of a line without its ending."""
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=DIGITS // 2).hexdigest()


def tagged(texts: Iterable[str], first: int = 1) -> list[str]:
    """Format lines for the model; a very long line is truncated, but hashed completely."""
    return [f"{n}:{hash_of(text)}|{_cut(text)}" for n, text in enumerate(texts, start=first)]


def anchor_in(word: str) -> Anchor:
    """Parse `12:a3f0`; anything after a bar is ignored."""
    found = _ANCHOR.fullmatch(word)
    if found is None:
        reason = (
            f"{word[:80]!r} names no line: give its number and hash as read shows them, 12:a3f0"
        )
        raise ToolRefused(reason=reason)
    return Anchor(int(found[1]), found[2])


def edit_of(start: str, through: str | None, operation: str, text: str | None) -> LineEdit:
    """Build an edit from the arguments of the tool."""
    first = anchor_in(start)
    last = first if through is None else anchor_in(through)
    asked = EditOperation(operation)
    if last.number < first.number:
        raise ToolRefused(reason=f"line {last.number} does not follow line {first.number}")
    if asked in (EditOperation.INSERT_BEFORE, EditOperation.INSERT_AFTER):
        if last != first:
            raise ToolRefused(reason=f"{asked} takes one line, and no `through`")
        if not text:
            raise ToolRefused(reason=f"{asked} needs the text that is to be inserted")
    if asked is EditOperation.DELETE and text:
        raise ToolRefused(reason="delete takes no text; use replace")
    if asked is EditOperation.REPLACE and text is None:
        raise ToolRefused(reason="replace needs the text that is to be there")
    return LineEdit(first, last, asked, tuple(lines_in(text or "")))


def edited(path: str, document: Document, edits: Sequence[LineEdit]) -> tuple[Document, list[Span]]:
    """Apply all edits; return the new document and the ranges of the new lines.

    All anchors refer to the document as it is now. Raises EditStale if any line has changed.
    """
    _require_fresh(path, document, edits)
    ordered = sorted(enumerate(edits), key=lambda each: (*_reach(each[1]), each[0]))
    for (_, one), (_, other) in pairwise(ordered):
        if _reach(other)[0] < _reach(one)[1]:
            raise ToolRefused(reason=f"two edits change line {_reach(other)[0] + 1}")
    made, spans, moved = document, list[Span](), 0
    for _, edit in ordered:
        first, beyond = (place + moved for place in _reach(edit))
        require_lossless(path, made.texts[first:beyond], edit.lines)
        made = made.replaced(first, beyond, edit.lines)
        spans.append(Span(first, first + len(edit.lines)))
        moved += len(edit.lines) - (beyond - first)
    return made, spans


def around(texts: Sequence[str], spans: Iterable[Span], *, margin: int = _AROUND) -> str:
    """Format ranges of lines with some context; gaps are shown as dots."""
    wanted = sorted(
        {
            number
            for span in spans
            for number in range(max(0, span.first - margin), min(len(texts), span.beyond + margin))
        }
    )
    shown: list[str] = []
    for place, number in enumerate(wanted[:_SHOWN_MAX]):
        if place and number != wanted[place - 1] + 1:
            shown.append("…")
        shown += tagged([texts[number]], number + 1)
    if len(wanted) > _SHOWN_MAX:
        shown.append(f"… and {len(wanted) - _SHOWN_MAX} more lines")
    return "\n".join(shown)


def _reach(edit: LineEdit) -> tuple[int, int]:
    """Return the range that an edit replaces, from 0, end exclusive."""
    match edit.operation:
        case EditOperation.INSERT_BEFORE:
            return edit.start.number - 1, edit.start.number - 1
        case EditOperation.INSERT_AFTER:
            return edit.start.number, edit.start.number
        case _:
            return edit.start.number - 1, edit.through.number


def _require_fresh(path: str, document: Document, edits: Sequence[LineEdit]) -> None:
    texts = document.texts
    wrong = [
        anchor
        for anchor in dict.fromkeys(each for edit in edits for each in (edit.start, edit.through))
        if not 1 <= anchor.number <= len(texts) or hash_of(texts[anchor.number - 1]) != anchor.hash
    ]
    if not wrong:
        return
    places = [Span(min(a.number, len(texts)) - 1, min(a.number, len(texts))) for a in wrong]
    raise EditStale(
        path=path,
        reason="; ".join(_complaint(anchor, texts) for anchor in wrong[:5]),
        now=around(texts, places) or "(the file is empty)",
    )


def _complaint(anchor: Anchor, texts: Sequence[str]) -> str:
    if not 1 <= anchor.number <= len(texts):
        return f"there is no line {anchor.number}, it has {len(texts)}"
    same = [n for n, text in enumerate(texts, start=1) if hash_of(text) == anchor.hash]
    moved = f", such a line is {same[0]} now" if len(same) == 1 else ""
    return f"line {anchor.number} is not {anchor.hash} any more{moved}"


def _cut(text: str) -> str:
    if len(text) > _LINE_CHARS_MAX:
        text = f"{text[:_LINE_CHARS_MAX]}… (+{len(text) - _LINE_CHARS_MAX} characters)"
    return well_formed(text)
