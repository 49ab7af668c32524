"""Make text from outside safe to show on a terminal."""

from __future__ import annotations


def printable(text: str, *, keep: str = "") -> str:
    """Show every character that a terminal would obey or hide as its escape, except `keep`."""
    return "".join(
        character if character.isprintable() or character in keep else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
