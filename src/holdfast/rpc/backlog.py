"""What a subscriber has not read yet: bounded, with a stated policy for what does not fit."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import StrEnum

from holdfast.rpc.failures import SubscriberDropped
from holdfast.rpc.model import Notification


class Overflow(StrEnum):
    """What happens to a subscriber that reads too slowly."""

    DROP_OLDEST = "drop_oldest"  # the newest matter: forget the oldest, and count them
    END = "end"  # all matter: end the subscription, and say so


class Backlog:
    """Batches that wait for one subscriber, never more than it may hold.

    The newest batch is always kept whole, even if it alone is over the bound: it is in memory
    already, and came in one read.
    """

    def __init__(self, *, overflow: Overflow, items_max: int, bytes_max: int) -> None:
        assert items_max >= 1
        assert bytes_max >= 1
        self._overflow = overflow
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._batches: deque[tuple[Sequence[Notification], int]] = deque()
        self._items = 0
        self._bytes = 0
        self.dropped = 0

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Add what one read yielded; raises when the policy is to end."""
        self._batches.append((batch, size))
        self._items += len(batch)
        self._bytes += size
        while len(self._batches) > 1 and self._over():
            oldest, weight = self._batches.popleft()
            self._items -= len(oldest)
            self._bytes -= weight
            self.dropped += len(oldest)
            if self._overflow is Overflow.END:
                raise SubscriberDropped(dropped=self.dropped)

    def take(self) -> list[Notification]:
        """Hand over all that waits, in order; empty if nothing does."""
        taken = [item for batch, _ in self._batches for item in batch]
        self._batches.clear()
        self._items = self._bytes = 0
        return taken

    def _over(self) -> bool:
        return self._items > self._items_max or self._bytes > self._bytes_max
