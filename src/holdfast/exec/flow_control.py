"""Decide how much a client may be told that says what it has taken, and when it says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.exec.model import Event, Output
from holdfast.exec.output_index import RECORD_BYTES

EVENTS_MAX = 4096
"""So many events of a process a client holds at most, however small they are."""


class Credit:
    """What one client may still be told about one process.

    It has said how many bytes it holds for a slow reader. So many are told, and no more until it
    says what it has taken: more would find no room there.
    """

    def __init__(self, bytes_max: int, *, taken: int = 0) -> None:
        self._bytes_max = bytes_max
        self._told: deque[tuple[int, int]] = deque()  # number and size of what is not taken
        self._bytes = 0
        self.taken = taken

    @property
    def bytes_left(self) -> int:
        """How many bytes may be told; none where no event may be."""
        return max(0, self._bytes_max - self._bytes) if self.events_left else 0

    @property
    def events_left(self) -> int:
        """How many events may be told."""
        return EVENTS_MAX - len(self._told)

    def tell(self, first_seq: int, lengths: Iterable[int]) -> None:
        """Take note of events that are told, in order, by how much output is in each."""
        for seq, length in enumerate(lengths, start=first_seq):
            self._told.append((seq, RECORD_BYTES + length))
            self._bytes += RECORD_BYTES + length

    def take(self, seq: int) -> None:
        """Take note that the client needs nothing up to this event any more."""
        self.taken = max(self.taken, seq)
        while self._told and self._told[0][0] <= seq:
            self._bytes -= self._told.popleft()[1]


class Acknowledgements:
    """Decides when to say what was taken: at half of what is told, so that nobody waits for it."""

    def __init__(self) -> None:
        self._bytes = self._events = 0

    def take(self, events: Iterable[Event], bytes_max: int | None) -> bool:
        """Take note of what was taken; say whether that is to be told now, to who wants to know."""
        if bytes_max is None:
            return False
        for event in events:
            self._bytes += size_of(event)
            self._events += 1
        is_due = 2 * self._bytes >= bytes_max or 2 * self._events >= EVENTS_MAX
        if is_due:
            self._bytes = self._events = 0
        return is_due


def size_of(event: Event) -> int:
    """What an event weighs, the same as where it is kept."""
    return RECORD_BYTES + (len(event.data) if isinstance(event, Output) else 0)
