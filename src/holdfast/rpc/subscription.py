"""A bounded view on the notifications of one connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from copy import copy
from types import TracebackType
from typing import Self

import anyio

from holdfast.failures import Failure
from holdfast.rpc.backlog import Backlog
from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.model import Notification


class Subscription:
    """Every notification from its creation on, in order and in batches, for one reader.

    A reader that is too slow loses what its overflow policy says, and nobody else notices. When
    the connection ends, the reader gets what still waits, then the failure that ended it.
    """

    def __init__(self, backlog: Backlog, forget: Callable[[Subscription], None]) -> None:
        self._backlog = backlog
        self._forget = forget
        self._changed = anyio.Event()
        self._end: Failure | None = None

    @property
    def dropped(self) -> int:
        """How many notifications this reader was too slow for."""
        return self._backlog.dropped

    async def receive(self) -> Sequence[Notification]:
        """Wait for news: all that came since the last call; raise what ended the connection."""
        while not (batch := self._backlog.take()):
            if self._end is not None:
                raise copy(self._end)
            self._changed = anyio.Event()
            await self._changed.wait()
        return batch

    async def __aiter__(self) -> AsyncIterator[Notification]:
        """Yield single notifications until the connection is closed; any other end raises."""
        try:
            while True:
                for notification in await self.receive():
                    yield notification
        except ConnectionClosed:
            return

    def close(self) -> None:
        """Stop following; may be called again."""
        self._forget(self)
        self.end(ConnectionClosed(reason="the subscription was closed"))

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Called by the connection with what one read yielded; may end the subscription."""
        try:
            self._backlog.put(batch, size)
        except Failure as failure:
            self._backlog.take()
            self._forget(self)
            self.end(failure)
        self._changed.set()

    def end(self, failure: Failure) -> None:
        """Called by the connection when nothing will follow; the first reason stays."""
        self._end = self._end or failure
        self._changed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
