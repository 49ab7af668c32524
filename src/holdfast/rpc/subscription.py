"""Subscription to the notifications of one connection, with a bounded queue."""

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
    """Yields every notification from its creation on, in order and in batches, to one reader.

    A slow reader loses notifications by its overflow policy; other subscribers are not affected.
    When the connection ends, the reader gets the queued notifications, then the failure.
    """

    def __init__(self, backlog: Backlog, forget: Callable[[Subscription], None]) -> None:
        self._backlog = backlog
        self._forget = forget
        self._changed = anyio.Event()
        self._end: Failure | None = None

    @property
    def dropped(self) -> int:
        """Number of notifications that were dropped because the queue was full."""
        return self._backlog.dropped

    async def receive(self) -> Sequence[Notification]:
        """Wait for all notifications since the last call; raises the failure that ended the
        connection.
        """
        while not (batch := self._backlog.take()):
            if self._end is not None:
                raise copy(self._end)
            self._changed = anyio.Event()
            await self._changed.wait()
        return batch

    async def __aiter__(self) -> AsyncIterator[Notification]:
        """Yield single notifications until the connection closes; raises on any other end."""
        try:
            while True:
                for notification in await self.receive():
                    yield notification
        except ConnectionClosed:
            return

    def close(self) -> None:
        """Unsubscribe; idempotent."""
        self._forget(self)
        self.end(ConnectionClosed(reason="the subscription was closed"))

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Queue the notifications of one read (called by the connection); may end the
        subscription.
        """
        try:
            self._backlog.put(batch, size)
        except Failure as failure:
            self._backlog.take()
            self._forget(self)
            self.end(failure)
        self._changed.set()

    def end(self, failure: Failure) -> None:
        """Set the failure to raise after the queue (called by the connection); the first one
        counts.
        """
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
