"""A thread for blocking calls with the cheapest hand-over to and from an event loop.

Passing work to a thread and its result back takes two wake-ups, which dominate the cost next to a
fast disk. Each is one byte through a pipe here: measured at little more than half the time of a
`queue.Queue` in one direction and `call_soon_threadsafe` in the other.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Thread
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

import anyio

from holdfast.failures import Failure, boundary

Result = TypeVar("Result")


class WriterThread:
    """Runs one piece of work after the other, in the order they were given.

    It serves one event loop, and another one after that is closed.
    """

    def __init__(self) -> None:
        self._orders: deque[_Order] = deque()  # the first one is being executed
        self._done: deque[tuple[_Order, int | Failure]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._serve, name="holdfast-writer", daemon=True)
        self._is_over = True

    def __enter__(self) -> Self:
        self._work_bell, self._done_bell = _Bell(), _Bell()
        self._is_over = False
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._work_bell.ring()
        self._thread.join()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._done_bell.number)
            self._loop.call_soon_threadsafe(self._tell_all)
        self._work_bell.close()
        self._done_bell.close()

    async def run(self, work: Callable[[], int]) -> int:
        """Return what the work returned, or raise what it raised, as a failure."""
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.start(work, partial(_settle, told))
        return await told

    def start(self, work: Callable[[], int], tell: Callable[[int | Failure], None]) -> None:
        """Queue work; `tell` is called with its outcome in the running event loop."""
        assert not self._is_over, "the thread has ended"
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._serve_loop(loop)
        self._orders.append(_Order(work, tell, loop))
        self._work_bell.ring()

    def _serve_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._loop is None or self._loop.is_closed(), "it serves another event loop"
        self._loop = loop
        loop.add_reader(self._done_bell.number, self._hear)

    def _serve(self) -> None:
        """Work until it is over; only what fails costs the handling of failures."""
        while True:
            try:
                with boundary("writer"):
                    return self._work()
            except Failure as failure:
                self._finish(self._orders.popleft(), failure)

    def _work(self) -> None:
        while True:
            while self._orders:
                outcome = self._orders[0].work()
                self._finish(self._orders.popleft(), outcome)
            if self._is_over:
                return
            self._work_bell.hear()

    def _finish(self, order: _Order, outcome: int | Failure) -> None:
        self._done.append((order, outcome))
        self._done_bell.ring()

    def _hear(self) -> None:
        self._done_bell.hear()
        self._tell_all()

    def _tell_all(self) -> None:
        while self._done:
            order, outcome = self._done.popleft()
            if not order.loop.is_closed():  # a closed loop runs no callbacks
                order.tell(outcome)


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return what the work returned, or raise what it raised, as a failure.

    It runs in its own thread and is awaited even when the caller is cancelled, so that it releases
    its resources.
    """
    done: list[Result] = []

    def run() -> int:
        done.append(work())
        return 0

    with WriterThread() as thread, anyio.CancelScope(shield=True):
        await thread.run(run)
    return done[0]


class _Order(NamedTuple):
    """Work, and who is to be told in which event loop."""

    work: Callable[[], int]
    tell: Callable[[int | Failure], None]
    loop: asyncio.AbstractEventLoop


class _Bell:
    """Wakes the other thread, which then processes everything that is queued.

    Append to the queue before `ring`: one byte is written until `hear` reads it.
    """

    def __init__(self) -> None:
        self.number, self._other_end = os.pipe()
        self._rings = False

    def ring(self) -> None:
        if not self._rings:
            self._rings = True
            os.write(self._other_end, b"\0")

    def hear(self) -> None:
        """Wait until it rings."""
        os.read(self.number, 1)
        self._rings = False

    def close(self) -> None:
        os.close(self.number)
        os.close(self._other_end)


def run_inline(work: Callable[[], int], tell: Callable[[int | Failure], None]) -> None:
    """Do what blocks right here, and tell soon: for a simulation, where there are no threads."""
    outcome: int | Failure
    try:
        with boundary("writer"):
            outcome = work()
    except Failure as failure:
        outcome = failure
    asyncio.get_running_loop().call_soon(tell, outcome)


def _settle(told: asyncio.Future[int], outcome: int | Failure) -> None:
    if told.done():
        return  # the waiting task was cancelled
    if isinstance(outcome, Failure):
        told.set_exception(outcome)
    else:
        told.set_result(outcome)
