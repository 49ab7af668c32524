"""A thread that does what blocks, close to the event loop that waits for it.

Handing work to a thread and back costs two wake-ups, and next to a fast disk they are what one
counts. This does nothing but those two; a general thread pool takes up to eight times as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Self

from holdfast.failures import Failure, boundary

_Order = tuple[Callable[[], int], "asyncio.Future[int]", asyncio.AbstractEventLoop]


class WriterThread:
    """Runs one piece of work after the other, in the order they were given."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()  # each has a task that waits
        self._thread = Thread(target=self._serve, name="holdfast-writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._orders.put(None)
        self._thread.join()

    async def run(self, work: Callable[[], int]) -> int:
        """Return what the work returned, or raise what it raised, as a failure."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._orders.put((work, future, loop))
        return await future

    def _serve(self) -> None:
        while (order := self._orders.get()) is not None:
            work, future, loop = order
            outcome: int | Failure
            try:
                with boundary("writer"):
                    outcome = work()
            except Failure as failure:
                outcome = failure
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(_tell, future, outcome)


def _tell(future: asyncio.Future[int], outcome: int | Failure) -> None:
    if future.done():
        return  # whoever waited was torn away
    if isinstance(outcome, Failure):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
