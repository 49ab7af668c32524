"""What one reader of a turn has not read yet, in bounded memory."""

from __future__ import annotations

from holdfast.codex.core.events import DELTAS
from holdfast.codex.failures import EventsLost
from holdfast.codex.model import EventsDropped
from holdfast.codex.wire.message import Message


class Feed:
    """Events that wait for one reader.

    When too much waits, deltas go first: what they say comes again, whole, with their item. When
    that is not enough, the feed ends rather than leave out what cannot be had again.
    """

    def __init__(self, thread: str, *, items_max: int, bytes_max: int) -> None:
        self._thread = thread
        self._items_max, self._bytes_max = items_max, bytes_max
        self._waiting: list[tuple[Message, int]] = []
        self._bytes = 0
        self._dropped = 0

    def put(self, event: Message, size: int) -> None:
        """Add an event of so many bytes; raises when nothing more can be kept."""
        self._waiting.append((event, size))
        self._bytes += size
        if len(self._waiting) > self._items_max or self._bytes > self._bytes_max:
            self._make_room()

    def take(self) -> list[Message]:
        """Hand over all that waits, in order."""
        taken = [event for event, _ in self._waiting]
        if self._dropped:
            taken.insert(0, EventsDropped(self._dropped))
        self._waiting, self._bytes, self._dropped = [], 0, 0
        return taken

    def _make_room(self) -> None:
        kept = [(event, size) for event, size in self._waiting if not isinstance(event, DELTAS)]
        self._dropped += len(self._waiting) - len(kept)
        self._waiting, self._bytes = kept, sum(size for _, size in kept)
        if len(kept) > self._items_max // 2 or self._bytes > self._bytes_max // 2:
            self._waiting, self._bytes = [], 0
            raise EventsLost(thread=self._thread)
