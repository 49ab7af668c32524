"""Fair scheduling of output between processes, and how far a read reaches.

Processes with few events come first, in FIFO order, in the first half of a turn; the second half is
for processes with many events, if there are any, so that none starves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

# Events: something said, an exit and a close.
WORDS_MAX: Final = 3

One = TypeVar("One")


class DueQueue(Generic[One]):
    """Processes with events to send, each queued once."""

    def __init__(self) -> None:
        self._brief: dict[One, None] = {}
        self._others: dict[One, None] = {}

    def __bool__(self) -> bool:
        return bool(self._brief or self._others)

    def put(self, one: One, events: int) -> None:
        """Queue one with this number of events; one that is queued already keeps its place."""
        if one not in self._brief and one not in self._others:
            (self._brief if events <= WORDS_MAX else self._others)[one] = None

    def take(self, *, is_first_half: bool) -> One:
        """Remove and return the next one, for the first or the second half of a turn."""
        is_brief = bool(self._brief) and (is_first_half or not self._others)
        among = self._brief if is_brief else self._others
        one = next(iter(among))
        del among[one]
        return one

    def drop(self, one: One) -> None:
        """Remove one from the queue."""
        self._brief.pop(one, None)
        self._others.pop(one, None)

    def clear(self) -> None:
        self._brief.clear()
        self._others.clear()


UNBOUNDED_BYTES_MAX = 32 * 2**20
"""So much fits, as base64, into the largest message that every known client accepts."""


@dataclass(frozen=True, slots=True)
class ProcessProgress:
    """Sequence numbers of a process, from 1; those below `first_seq` are dropped."""

    next_seq: int
    first_seq: int = 1
    exit_seq: int | None = None
    closed_seq: int | None = None


@dataclass(frozen=True, slots=True)
class ReadReach:
    """What a read result covers: all events below `next_seq`."""

    next_seq: int
    exited: bool
    closed: bool
    is_last: bool  # whether the client will not ask for more: what follows is told as news


def reach_of(
    progress: ProcessProgress, *, last_seq: int | None, bytes_max: int | None
) -> ReadReach:
    """Return how far a result with this last chunk reaches; None if it has no chunk.

    An unbounded read that had to stop early is answered as of its last chunk: later events follow
    as notifications.
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
    """Whether output after a sequence number is retained, apart from exit and close."""
    first = max(after_seq + 1, progress.first_seq)
    ends = sum(seq is not None and seq >= first for seq in (progress.exit_seq, progress.closed_seq))
    return progress.next_seq - first - ends > 0


def is_due(progress: ProcessProgress, *, after_seq: int) -> bool:
    """Whether a waiting read must return: for output, a close, or an unseen exit."""
    unseen_end = progress.exit_seq is not None and progress.exit_seq > after_seq
    is_closed = progress.closed_seq is not None
    return is_closed or unseen_end or has_output(progress, after_seq=after_seq)
