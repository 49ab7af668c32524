"""What several tell and one reads, in batches, with a bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import anyio

Item = TypeVar("Item")

ITEMS_MAX = 10_000


class BatchQueue(Generic[Item]):
    """Everything that was put, in order, for one reader; who puts too much waits."""

    def __init__(self, *, items_max: int = ITEMS_MAX) -> None:
        self._items_max = items_max
        self._items: list[Item] = []
        self._came, self._went = anyio.Event(), anyio.Event()

    async def put(self, items: Sequence[Item]) -> None:
        """Add what belongs together, once there is room."""
        while len(self._items) >= self._items_max:
            await self._went.wait()
        self._items.extend(items)
        self._came.set()

    async def receive(self) -> list[Item]:
        """Wait for anything, and take all that is there."""
        while not self._items:
            self._came = anyio.Event()
            await self._came.wait()
        taken, self._items = self._items, []
        self._went.set()
        self._went = anyio.Event()  # anew for the next: all who wait have the one before
        return taken
