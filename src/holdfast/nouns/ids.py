"""Ids that sort by creation time (`ses_01jb…`), and cursors into logs (`log:sequence`).

An id is a prefix for its type, an underscore, and a ULID: 48 bits of milliseconds since the epoch
and 80 random bits in lower-case Crockford base32, which is 26 characters without i, l, o and u.
Time and random bits are arguments; the caller (`world.IdMaker`) keeps ids of one millisecond apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import NewType, Self

from holdfast.nouns.failures import CursorInvalid, IdInvalid
from holdfast.nouns.text import shown

Id = NewType("Id", str)

ENTROPY_BYTES = 10
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [one + other for one in _DIGITS for other in _DIGITS]
_PREFIX = re.compile(r"[a-z]{2,12}", re.ASCII)
_STAMP = re.compile(f"[0-7][{_DIGITS}]{{25}}", re.ASCII)  # 26 digits hold 130 bits, an id 128


def make_id(prefix: str, at_ms: int, entropy: bytes) -> Id:
    """Return an id; ids of a later millisecond sort after it."""
    assert _PREFIX.fullmatch(prefix), f"{prefix!r} is not a prefix"
    assert 0 <= at_ms < 2**48
    assert len(entropy) == ENTROPY_BYTES
    number = at_ms << 8 * ENTROPY_BYTES | int.from_bytes(entropy, "big")
    stamp = "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -10, -10)])
    return Id(f"{prefix}_{stamp}")


def check_id(text: str, prefix: str) -> Id:
    """Return a text as an id with this prefix; raises IdInvalid if it is not one."""
    head, _, stamp = text.partition("_")
    if head != prefix or _STAMP.fullmatch(stamp) is None:
        raise IdInvalid(id=shown(text), prefix=prefix)
    return Id(text)


NUMBER_MAX = 2**63 - 1  # the largest integer of SQLite, PostgreSQL and JSON journals
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def split(text: str, mark: str) -> tuple[str, int] | None:
    """Parse `word mark number`; None if invalid. The text form of a pair is unique."""
    word, _, digits = text.rpartition(mark)
    if _NUMBER.fullmatch(digits) is None or not is_pair(word, int(digits)):
        return None
    return word, int(digits)


def is_pair(word: str, number: int) -> bool:
    """Whether a word and a number can be written as a cursor."""
    return 0 <= number <= NUMBER_MAX and _is_word(word)


# Cursors are built for every event, nearly all of them with the names of a few logs.
@lru_cache(maxsize=1024)
def _is_word(word: str) -> bool:
    return _WORD.fullmatch(word) is not None


@total_ordering
@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a log: everything up to and including `sequence` was read; 0 is the start.

    Comparing cursors of different logs is a bug and raises AssertionError.
    """

    log: str
    sequence: int

    def __post_init__(self) -> None:
        assert is_pair(self.log, self.sequence), f"{self.log!r}, {self.sequence} is not a position"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `log:sequence`; raises CursorInvalid."""
        pair = split(text, ":")
        if pair is None:
            raise CursorInvalid(cursor=shown(text))
        return cls(*pair)

    def __str__(self) -> str:
        return f"{self.log}:{self.sequence}"

    def __lt__(self, other: Cursor) -> bool:
        assert self.log == other.log, f"{self} and {other} are positions in two logs"
        return self.sequence < other.sequence
