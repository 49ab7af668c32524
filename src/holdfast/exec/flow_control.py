"""Flow control between server and client: credit for unacknowledged output of a process.

Decision: docs/decisions/0060-flow-control-by-receipts.md
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.exec.model import Event, Output
from holdfast.exec.output_index import RECORD_BYTES

EVENTS_MAX = 4096
"""So many events of a process a client holds at most, however small they are."""


class Credit:
    """Send credit of one client for one process.

    The client announced how many bytes it buffers. The server sends that much, then waits for an
    acknowledgement: more would overflow the client's buffer.
    """

    def __init__(self, bytes_max: int, *, taken: int = 0) -> None:
        self._bytes_max = bytes_max
        # Number and size of what is not taken.
        self._told: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self.taken = taken

    @property
    def bytes_left(self) -> int:
        """Bytes that may be sent; zero if the event limit is reached."""
        return max(0, self._bytes_max - self._bytes) if self.events_left else 0

    @property
    def events_left(self) -> int:
        """Events that may be sent."""
        return EVENTS_MAX - len(self._told)

    def tell(self, first_seq: int, lengths: Iterable[int]) -> None:
        """Charge sent events, by the length of their output in bytes."""
        for seq, length in enumerate(lengths, start=first_seq):
            self._told.append((seq, RECORD_BYTES + length))
            self._bytes += RECORD_BYTES + length

    def take(self, seq: int) -> None:
        """Return the credit of all events up to `seq`."""
        self.taken = max(self.taken, seq)
        while self._told and self._told[0][0] <= seq:
            self._bytes -= self._told.popleft()[1]


class Acknowledgements:
    """Decides when a client acknowledges: at half of its credit, so that the server never
    stalls.
    """

    def __init__(self) -> None:
        self._bytes = self._events = 0

    def take(self, events: Iterable[Event], bytes_max: int | None) -> bool:
        """Count consumed events; returns whether an acknowledgement is due."""
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
    """Return the bytes that an event costs, the same as in the index."""
    return RECORD_BYTES + (len(event.data) if isinstance(event, Output) else 0)
