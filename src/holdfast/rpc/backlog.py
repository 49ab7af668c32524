"""Bounded queue of unread notifications, with a policy for overflow."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import StrEnum

from holdfast.rpc.failures import SubscriberDropped
from holdfast.rpc.model import Notification


class Overflow(StrEnum):
    """What a full queue does to a subscriber that reads too slowly."""

    # The newest matter: forget the oldest, and count them.
    DROP_OLDEST = "drop_oldest"
    # All matter: end the subscription, and say so.
    END = "end"


class Backlog:
    """Batches of notifications that wait for one subscriber, bounded in number and bytes.

    The newest batch is always queued whole, even if it alone exceeds the bound: it is in memory
    already, from one read.
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
        """Queue the notifications of one read; raises `SubscriberDropped` if the policy is
        `END`.
        """
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
        """Return all queued notifications in order, and clear the queue."""
        taken = [item for batch, _ in self._batches for item in batch]
        self._batches.clear()
        self._items = self._bytes = 0
        return taken

    def _over(self) -> bool:
        return self._items > self._items_max or self._bytes > self._bytes_max
