"""What a turn tells, for one reader who writes it down; who must know waits until it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from holdfast.agent.model import AnyMemo, AnyNews, Awaiting, Showing

Told = AnyMemo | AnyNews
"""What is kept of a turn, and what is shown of it, in the order in which it happened."""

_SHOWN_MAX: Final = 5_000  # pieces that nobody has looked at yet; more are not shown at all


class Outbox:
    """All that was put into it, in order; what was taken out counts as kept at the next look."""

    def __init__(self) -> None:
        self._items: list[Told] = []
        self._put = 0
        self._kept = 0  # of those that were put
        self._taken = 0
        self._came, self._went = anyio.Event(), anyio.Event()
        self._is_closed = False

    def put(self, *told: Told) -> None:
        """Tell something, in one batch; nobody may act on it before it is kept."""
        self._items.extend(told)
        self._put += len(told)
        self._came.set()

    def show(self, piece: Showing | Awaiting) -> None:
        """Tell something that may be left out if nobody keeps up."""
        if len(self._items) < _SHOWN_MAX:
            self.put(piece)

    async def kept(self) -> bool:
        """Wait until all that was put so far is kept; False if nobody will ever keep it."""
        last = self._put
        while self._kept < last and not self._is_closed:
            await self._went.wait()
        return self._kept >= last

    async def take(self) -> Sequence[Told]:
        """Wait for anything, and take all of it; what was taken before is kept by now."""
        self._kept = self._taken
        self._went.set()
        self._went = anyio.Event()
        while not self._items:
            self._came = anyio.Event()
            await self._came.wait()
        taken, self._items = self._items, []
        self._taken += len(taken)
        return taken

    def close(self, *, is_kept: bool) -> None:
        """Say that nobody reads on, and whether what was taken last is kept."""
        self._is_closed = True
        if is_kept:
            self._kept = self._taken
        self._went.set()
