"""A picture of a real screen, as SVG: its text, in its places and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from pyte.screens import Char

SVG = "http://www.w3.org/2000/svg"
CELL, ROW, EDGE, SIZE = 8.4, 18, 16, 14
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")
CHANGING = {r"draft [0-9a-z]{8}": "draft ········", r"in \d+\.\d+s": "in ·.···s"}


@dataclass(frozen=True)
class Palette:
    """The ground, the ink, and the sixteen colours of a terminal: plain ones, then bright ones."""

    ground: str
    ink: str
    plain: tuple[str, ...]
    bright: tuple[str, ...]

    def colour(self, name: str) -> str | None:
        """A colour as pyte names it; none is the usual one."""
        if name in NAMES:
            return self.plain[NAMES.index(name)]
        bright = name.removeprefix("bright")
        if bright != name and bright in NAMES:
            return self.bright[NAMES.index(bright)]
        return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else None


def _hexes(text: str) -> tuple[str, ...]:
    return tuple(f"#{each}" for each in text.split())


DARK = Palette(
    "#1e1e1e",
    "#d4d4d4",
    _hexes("000000 f14c4c 23d18b e5c07b 3b8eea d670d6 29b8db e5e5e5"),
    _hexes("808080 f14c4c 23d18b f5f543 3b8eea d670d6 29b8db ffffff"),
)


def picture(rows: Sequence[Sequence[Char]], palette: Palette = DARK) -> str:
    """Rows of a screen as a whole document."""
    width = max(map(len, rows)) * CELL + 2 * EDGE
    height = len(rows) * ROW + 2 * EDGE
    said = "\n".join("".join(each.data for each in row).rstrip() for row in rows)
    lines = [
        f'<svg xmlns="{SVG}" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-size="{SIZE}" '
        f"font-family={quoteattr(FONT)}>",
        f"<desc>{escape(said)}</desc>",
        f'<rect width="100%" height="100%" rx="8" fill="{palette.ground}"/>',
    ]
    for number, row in enumerate(rows):
        lines += _row(row, EDGE + number * ROW, palette)
    return "\n".join([*lines, "</svg>", ""])


def text_of(picture: str) -> str:
    """What is said in a picture; what is another each time is a dot."""
    said = ElementTree.fromstring(picture).findtext(f"{{{SVG}}}desc") or ""
    for form, dots in CHANGING.items():
        said = re.sub(form, dots, said)
    return said


def _row(row: Sequence[Char], top: float, palette: Palette) -> Iterator[str]:
    at = 0
    for look, run in groupby(row, key=lambda each: each._replace(data="")):
        text = "".join(each.data for each in run)
        cells, left = len(text), EDGE + at * CELL
        at += cells
        yield from _run(text, look, left, top, palette)


def _run(text: str, look: Char, left: float, top: float, palette: Palette) -> Iterator[str]:
    ink = palette.colour(look.fg) or palette.ink
    ground = palette.colour(look.bg)
    if look.reverse:
        ink, ground = ground or palette.ground, ink
    if ground is not None:
        width = len(text) * CELL
        yield f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW}" fill="{ground}"/>'
    if not text.strip():
        return
    marks = ' font-weight="bold"' * look.bold + ' font-style="italic"' * look.italics
    marks += ' opacity="0.6"' * look.blink + ' text-decoration="underline"' * look.underscore
    begin = len(text) - len(text.lstrip())
    left += begin * CELL
    shown = text.strip()
    yield (
        f'<text x="{left:.1f}" y="{top + SIZE}" textLength="{len(shown) * CELL:.1f}" '
        f'xml:space="preserve" fill="{ink}"{marks}>{escape(shown)}</text>'
    )
