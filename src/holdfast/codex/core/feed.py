"""What one reader of a turn has not read yet, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._batches: list[tuple[Sequence[Message], int]] = []
        self._items = self._bytes = self._dropped = 0

    def put(self, events: Sequence[Message], size: int) -> None:
        """Add events of so many bytes each; raises when nothing more can be kept."""
        self._keep(events, size)
        if self._items > self._items_max or self._bytes > self._bytes_max:
            self._make_room()

    def take(self) -> list[Message]:
        """Hand over all that waits, in order."""
        taken: list[Message] = [EventsDropped(self._dropped)] if self._dropped else []
        for events, _ in self._batches:
            taken += events
        self._clear()
        self._dropped = 0
        return taken

    def _make_room(self) -> None:
        before, batches = self._items, self._batches
        self._clear()
        for events, size in batches:
            if kept := [event for event in events if type(event) not in DELTAS]:
                self._keep(kept, size)
        self._dropped += before - self._items
        if self._items > self._items_max // 2 or self._bytes > self._bytes_max // 2:
            self._clear()
            raise EventsLost(thread=self._thread)

    def _keep(self, events: Sequence[Message], size: int) -> None:
        self._batches.append((events, size))
        self._items += len(events)
        self._bytes += len(events) * size

    def _clear(self) -> None:
        self._batches, self._items, self._bytes = [], 0, 0
