"""Ids that sort by the time they were made: `ses_01jb…`.

An id is a prefix that says of what, 48 bits of milliseconds since the epoch and 80 bits of
chance, in lower-case Crockford base32: 26 characters without i, l, o and u. Time and chance are
given; making no two alike within a millisecond is up to whoever gives them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import NewType, Self

from holdfast.nouns.failures import CursorInvalid, IdInvalid, LeaseInvalid
from holdfast.nouns.text import shown

Id = NewType("Id", str)

ENTROPY_BYTES = 10
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [one + other for one in _DIGITS for other in _DIGITS]
_PREFIX = re.compile(r"[a-z]{2,12}", re.ASCII)
_STAMP = re.compile(f"[0-7][{_DIGITS}]{{25}}", re.ASCII)  # 26 digits hold 130 bits, an id 128


def make_id(prefix: str, at_ms: int, entropy: bytes) -> Id:
    """Write one id; later ones sort after it."""
    assert _PREFIX.fullmatch(prefix), f"{prefix!r} is no prefix"
    assert 0 <= at_ms < 2**48
    assert len(entropy) == ENTROPY_BYTES
    number = at_ms << 8 * ENTROPY_BYTES | int.from_bytes(entropy, "big")
    stamp = "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -10, -10)])
    return Id(f"{prefix}_{stamp}")


def check_id(text: str, prefix: str) -> Id:
    """Take a text that someone gave us as an id of this kind, or refuse it."""
    head, _, stamp = text.partition("_")
    if head != prefix or _STAMP.fullmatch(stamp) is None:
        raise IdInvalid(id=shown(text), prefix=prefix)
    return Id(text)


# A word and a number in one text, as cursors and leases are written.

NUMBER_MAX = 2**63 - 1  # what every store of ours holds
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def split(text: str, mark: str) -> tuple[str, int] | None:
    """Read `word mark number`, or answer None; each pair has exactly one text."""
    word, _, digits = text.rpartition(mark)
    if _NUMBER.fullmatch(digits) is None or not is_pair(word, int(digits)):
        return None
    return word, int(digits)


def is_pair(word: str, number: int) -> bool:
    """Whether a word and a number have a text."""
    return 0 <= number <= NUMBER_MAX and _is_word(word)


@lru_cache(maxsize=1024)  # the same few logs and leases are named again and again
def _is_word(word: str) -> bool:
    return _WORD.fullmatch(word) is not None


# Positions in a log, by which a reader goes on where it stopped.


@total_ordering
@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a log has been read: up to and including `sequence`; 0 is before the first.

    Positions are earlier or later only within one log; comparing two logs is a bug.
    """

    log: str
    sequence: int

    def __post_init__(self) -> None:
        assert is_pair(self.log, self.sequence), f"{self.log!r}, {self.sequence} is no position"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, `log:sequence`."""
        pair = split(text, ":")
        if pair is None:
            raise CursorInvalid(cursor=shown(text))
        return cls(*pair)

    def __str__(self) -> str:
        return f"{self.log}:{self.sequence}"

    def __lt__(self, other: Cursor) -> bool:
        assert self.log == other.log, f"{self} and {other} are positions in two logs"
        return self.sequence < other.sequence


# Who may act on something that only one may act on.


@dataclass(frozen=True, slots=True)
class Lease:
    """A holder's claim; of two claims on one thing the newer generation wins."""

    holder: str
    generation: int

    def __post_init__(self) -> None:
        assert is_pair(self.holder, self.generation), f"{self.holder!r} cannot hold a lease"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form, `holder@generation`."""
        pair = split(text, "@")
        if pair is None:
            raise LeaseInvalid(lease=shown(text))
        return cls(*pair)

    def __str__(self) -> str:
        return f"{self.holder}@{self.generation}"

    def supersedes(self, other: Lease) -> bool:
        """Whether it takes over from `other`."""
        return self.generation > other.generation

    def refuses(self, presented: Lease) -> bool:
        """Whether one who knows this lease must turn away whoever presents the other.

        The same generation in two hands means that one of them was never granted it.
        """
        return presented != self and not presented.supersedes(self)
