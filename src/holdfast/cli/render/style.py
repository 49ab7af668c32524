"""Decide how a page looks: with which signs, in colour or not, how wide."""

from __future__ import annotations

import textwrap
from dataclasses import astuple, dataclass
from enum import Enum

WIDTH_LEAST, WIDTH_MOST = 30, 100


class Tone(Enum):
    """What a piece of text means, and the terminal's code for it."""

    GOOD = "32"
    CAREFUL = "33"
    BAD = "31"
    QUIET = "2"
    STRONG = "1"


@dataclass(frozen=True, slots=True)
class Signs:
    """The marks that stand before a line."""

    good: str
    careful: str
    bad: str
    none: str
    leads_to: str
    more: str  # stands for what is left out


FINE = Signs(good="✓", careful="!", bad="✗", none="–", leads_to="→", more="…")  # noqa: RUF001  # a dash is meant
PLAIN = Signs(good="+", careful="!", bad="x", none="-", leads_to=">", more="...")


@dataclass(frozen=True, slots=True)
class Look:
    """How to write for one reader."""

    width: int
    is_coloured: bool
    signs: Signs

    def paint(self, text: str, tone: Tone) -> str:
        """Text that shows what it means, where colour is wanted."""
        return f"\x1b[{tone.value}m{text}\x1b[0m" if self.is_coloured else text

    def wrap(self, text: str, *, indent: int) -> list[str]:
        """Lines of the page's width, all indented; a long word is never broken."""
        space = " " * indent
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=space,
            subsequent_indent=space,
            break_long_words=False,
            break_on_hyphens=False,
        )


def look(*, wanted: str, is_terminal: bool, colourless: bool, encoding: str, columns: int) -> Look:
    """How to write: `wanted` is auto, always or never, and an explicit word wins."""
    is_coloured = wanted == "always" or (wanted == "auto" and is_terminal and not colourless)
    width = max(WIDTH_LEAST, min(columns if is_terminal else WIDTH_MOST, WIDTH_MOST))
    return Look(width, is_coloured, FINE if _can_encode(FINE, encoding) else PLAIN)


def _can_encode(signs: Signs, encoding: str) -> bool:
    try:
        "".join(astuple(signs)).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
