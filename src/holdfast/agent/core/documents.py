"""Take a text file apart into lines and put it together again without losing a byte of it.

What is no UTF-8 is held such that it is written back as it was. Every line keeps its own ending;
new ones get the one that most lines have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.agent.core.unicode import REPLACEMENT, is_well_formed
from holdfast.agent.failures import ToolRefused

_BOM: Final = b"\xef\xbb\xbf"
_SNIFFED_BYTES: Final = 8192
_LF, _CRLF = "\n", "\r\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A line and how it ends; only the last one of a text may end in nothing."""

    text: str
    ending: str = _LF


@dataclass(frozen=True, slots=True)
class Document:
    """A text file: its lines, and whether a byte order mark stands before them."""

    lines: tuple[Line, ...]
    has_mark: bool = False

    @property
    def texts(self) -> list[str]:
        """The lines without their endings."""
        return [line.text for line in self.lines]

    @property
    def ending(self) -> str:
        """How most lines end."""
        carriages = sum(line.ending == _CRLF for line in self.lines)
        return _CRLF if carriages * 2 > len(self.lines) else _LF

    def encoded(self) -> bytes:
        """The bytes of the file."""
        whole = "".join(line.text + line.ending for line in self.lines)
        return (_BOM if self.has_mark else b"") + whole.encode("utf-8", "surrogateescape")

    def replaced(self, first: int, beyond: int, texts: Sequence[str]) -> Document:
        """The same with other lines in place of some; whether it ends in a newline stays as it is.

        `first` and `beyond` count from 0; where they are the same, lines are only added.
        """
        ending = self.ending
        lines = [
            *self.lines[:first],
            *(Line(text, ending) for text in texts),
            *self.lines[beyond:],
        ]
        is_open = bool(self.lines) and self.lines[-1].ending == ""
        closed = [Line(line.text, line.ending or ending) for line in lines]
        if is_open and closed:
            closed[-1] = Line(closed[-1].text, "")
        return Document(tuple(closed), self.has_mark)


def parsed(data: bytes) -> Document:
    """The document that these bytes are."""
    has_mark = data.startswith(_BOM)
    whole = data[len(_BOM) if has_mark else 0 :].decode("utf-8", "surrogateescape")
    pieces = whole.split(_LF)
    last = pieces.pop()
    lines = [
        Line(piece[:-1], _CRLF) if piece.endswith("\r") else Line(piece, _LF) for piece in pieces
    ]
    if last:
        lines.append(Line(last, ""))
    return Document(tuple(lines), has_mark)


def lines_in(text: str) -> list[str]:
    """The lines that somebody wrote; whether a newline ends the last one makes no difference."""
    if not text:
        return []
    return [line.removesuffix("\r") for line in text.removesuffix(_LF).split(_LF)]


def restyled(text: str, like: Document | None) -> bytes:
    """A whole text as bytes, with the mark and the line endings of the file that it replaces."""
    if like is None or not (like.has_mark or like.ending == _CRLF):
        return text.encode("utf-8", "surrogateescape")
    made = parsed(text.encode("utf-8", "surrogateescape"))
    lines = tuple(Line(line.text, line.ending and like.ending) for line in made.lines)
    return Document(lines, like.has_mark or made.has_mark).encoded()


def require_lossless(path: str, removed: Iterable[str], added: Iterable[str]) -> None:
    """Raise ToolRefused if bytes that are not UTF-8 would be replaced by U+FFFD.

    A model is shown such bytes as U+FFFD and repeats what it was shown.
    """
    if any(REPLACEMENT in line for line in added) and not all(map(is_well_formed, removed)):
        raise ToolRefused(
            reason=f"{path} is not UTF-8: bytes shown as {REPLACEMENT} in these lines would be "
            f"lost. Nothing was changed. Edit other lines, leave out {REPLACEMENT}, or change "
            "the bytes with a shell command"
        )


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text that one could read."""
    return b"\0" in data[:_SNIFFED_BYTES]
