"""Bounded multi-producer, single-consumer queue that is read in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")

ITEMS_MAX = 10_000


class BatchQueue(Generic[Item]):
    """FIFO queue: `receive` returns all queued items; `put` waits while the queue is full."""

    def __init__(self, *, items_max: int = ITEMS_MAX) -> None:
        self._items_max = items_max
        self._items: list[Item] = []
        self._came, self._went = anyio.Event(), anyio.Event()

    async def put(self, items: Sequence[Item]) -> None:
        """Append a batch; waits while the queue is full. One batch may exceed the bound."""
        while len(self._items) >= self._items_max:
            await self._went.wait()
        self._items.extend(items)
        self._came.set()

    async def receive(self) -> list[Item]:
        """Wait until the queue is not empty, and take all items."""
        while not self._items:
            self._came = anyio.Event()
            await self._came.wait()
        taken, self._items = self._items, []
        self._went.set()
        # Producers that wait hold the old event, which is set; later ones need an unset one.
        self._went = anyio.Event()
        return taken
