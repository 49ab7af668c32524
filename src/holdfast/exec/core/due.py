"""Decide who is told about next, so that a word does not wait for those who pour.

Whoever has little to tell comes first, in the order of asking. That may take half of a turn; the
rest of it belongs to those who have much to tell, if there are any, so that nobody starves.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

WORDS_MAX: Final = 3  # events: something said, an exit and a close

One = TypeVar("One")


class Due(Generic[One]):
    """Those who have something to tell, each of them once."""

    def __init__(self) -> None:
        self._brief: dict[One, None] = {}
        self._others: dict[One, None] = {}

    def __bool__(self) -> bool:
        return bool(self._brief or self._others)

    def put(self, one: One, events: int) -> None:
        """Let one tell so many events in its turn; who waits already keeps its place."""
        if one not in self._brief and one not in self._others:
            (self._brief if events <= WORDS_MAX else self._others)[one] = None

    def take(self, *, is_first_half: bool) -> One:
        """Who is next, in the first or the second half of a turn; it waits no more."""
        is_brief = bool(self._brief) and (is_first_half or not self._others)
        among = self._brief if is_brief else self._others
        one = next(iter(among))
        del among[one]
        return one

    def drop(self, one: One) -> None:
        """Forget that one has something to tell."""
        self._brief.pop(one, None)
        self._others.pop(one, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._brief.clear()
        self._others.clear()
