"""Decide who is told about next, so that a word does not wait for those who pour.

Whoever has little to tell comes first, in the order of asking. That may take half of a turn; the
rest of it belongs to those who have much to tell, if there are any, so that nobody starves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

WORDS_MAX: Final = 3  # events: something said, an exit and a close

One = TypeVar("One")


class DueQueue(Generic[One]):
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


# Decide how far the answer to a read reaches, and what it says about the process.

UNBOUNDED_BYTES_MAX = 32 * 2**20
"""So much fits, as base64, into the largest message that every known client accepts."""


@dataclass(frozen=True, slots=True)
class ProcessProgress:
    """How far a process has come; its events are numbered from 1, in one row.

    Events below `first_seq` are no longer kept.
    """

    next_seq: int
    first_seq: int = 1
    exit_seq: int | None = None
    closed_seq: int | None = None


@dataclass(frozen=True, slots=True)
class ReadReach:
    """What an answer reports: all that was numbered below `next_seq`, and no more."""

    next_seq: int
    exited: bool
    closed: bool
    is_last: bool  # whether the client will not ask for more: what follows is told as news


def reach_of(
    progress: ProcessProgress, *, last_seq: int | None, bytes_max: int | None
) -> ReadReach:
    """Report how far an answer reaches whose last chunk is `last_seq`, None if it has none.

    An unbounded read that had to stop early is answered as of the moment when its last chunk was
    the newest: nothing it says is wrong, and what follows comes as news.
    """
    exited, closed = progress.exit_seq is not None, progress.closed_seq is not None
    if last_seq is None:
        return ReadReach(progress.next_seq, exited, closed, is_last=True)
    has_more = has_output(progress, after_seq=last_seq)
    if bytes_max is not None:
        return ReadReach(last_seq + 1, exited, closed, is_last=not has_more)
    if has_more:
        seen_exit = progress.exit_seq is not None and progress.exit_seq <= last_seq
        return ReadReach(last_seq + 1, seen_exit, closed=False, is_last=True)
    return ReadReach(progress.next_seq, exited, closed, is_last=True)


def has_output(progress: ProcessProgress, *, after_seq: int) -> bool:
    """Whether output behind a number is kept: all numbers but those of the exit and the close."""
    first = max(after_seq + 1, progress.first_seq)
    ends = sum(seq is not None and seq >= first for seq in (progress.exit_seq, progress.closed_seq))
    return progress.next_seq - first - ends > 0


def is_due(progress: ProcessProgress, *, after_seq: int) -> bool:
    """Whether a read that waits must be answered: output, a close, or an end not yet seen."""
    unseen_end = progress.exit_seq is not None and progress.exit_seq > after_seq
    is_closed = progress.closed_seq is not None
    return is_closed or unseen_end or has_output(progress, after_seq=after_seq)
