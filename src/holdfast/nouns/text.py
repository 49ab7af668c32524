"""Make text from outside safe to show on a terminal."""

from __future__ import annotations

from unicodedata import category, east_asian_width

_MARKS = {"Mn", "Me"}
_JOINERS = "\u200c\u200d"  # without them many scripts, and most emoji, fall apart
_PROSE = "\n\t" + _JOINERS


def printable(text: str, *, keep: str = "") -> str:
    """Show every character that a terminal would obey or hide as its escape, except `keep`."""
    return "".join(
        character if character.isprintable() or character in keep else _escaped(character)
        for character in text
    )


def prose(text: str) -> str:
    """The same for text of many lines, which keeps its lines, tabs, spaces and joiners.

    Each character is judged by itself, so a text may come in chunks, cut anywhere.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in _PROSE or category(character) == "Zs"
        else _escaped(character)
        for character in text
    )


def cut(text: str, cells: int, *, more: str) -> str:
    """Printable text in at most so many cells of a terminal; `more` marks what is left out."""
    if _cells(text) <= cells:
        return text
    kept, room = "", cells - _cells(more)
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + more


def _cells(text: str) -> int:
    """How many columns a text takes: none for a mark on a letter, two for a wide character."""
    return sum(
        0 if category(c) in _MARKS else 2 if east_asian_width(c) in "WF" else 1 for c in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
