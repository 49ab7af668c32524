"""Escape untrusted text and bytes for terminals and JSON.

`printable` and `prose` escape characters that a terminal would interpret or hide. `escaped` and
`unescaped` are a reversible text form of arbitrary bytes: printable UTF-8 is unchanged, a backslash
is doubled, and every byte of a control, invisible or bidirectional character or of invalid UTF-8
becomes `\\xNN`.
"""

from __future__ import annotations

import re
import unicodedata
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


_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # Cs: surrogateescape of an invalid byte
_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.|$)", re.DOTALL)
_SHOWN_MAX = 200


def escaped(raw: bytes) -> str:
    """Write any bytes as text that `unescaped` reads back exactly."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii() and text.isprintable() and "\\" not in text:  # nearly every name is so
        return text
    return "".join(map(_visible, text))


def unescaped(text: str) -> bytes:
    """Read what `escaped` wrote; raise ValueError with the reason for other text."""
    try:
        raw = text.encode("utf-8")
        return _ESCAPE.sub(_byte, raw) if b"\\" in raw else raw
    except UnicodeEncodeError as error:
        raise ValueError("it is not valid Unicode") from error


def shown(given: bytes | str) -> str:
    """Escape and truncate a value for the text of a failure."""
    raw = given.encode("utf-8", "backslashreplace") if isinstance(given, str) else given
    return escaped(raw[:_SHOWN_MAX]) + ("…" if len(raw) > _SHOWN_MAX else "")


def _visible(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def _byte(escape: re.Match[bytes]) -> bytes:
    word = escape[1]
    if word == b"\\":
        return word
    if len(word) == 3:  # x and two digits; the pattern allows no other three
        return bytes.fromhex(word[1:].decode())
    raise ValueError("a backslash in it begins no escape")
