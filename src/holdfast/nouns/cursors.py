"""Positions in a log, by which a reader goes on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import Self

from holdfast.nouns.escapes import shown
from holdfast.nouns.failures import CursorInvalid
from holdfast.nouns.numbered import is_pair, split


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
