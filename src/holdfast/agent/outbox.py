"""What a turn tells, for one reader who writes it down; who must know waits until it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from holdfast.agent.model import AnyMemo, AnyNews, Showing

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

    def show(self, piece: Showing) -> None:
        """Tell something that may be left out if nobody keeps up."""
        if len(self._items) < _SHOWN_MAX:
            self.put(piece)

    async def kept(self) -> None:
        """Wait until all that was put so far is kept."""
        last = self._put
        while self._kept < last and not self._is_closed:
            await self._went.wait()

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

    def close(self) -> None:
        """Let nobody wait any more: what is put from now on is kept by nobody."""
        self._is_closed = True
        self._went.set()
