"""Our requests that wait for an answer: every one ends, by its deadline at the latest."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import copy

import anyio

from holdfast.failures import Failure, from_rpc_data
from holdfast.rpc.core.peer import Peer
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut
from holdfast.rpc.model import Answer, Refusal, RequestId


class Waiter:
    """One request of ours on its way to an answer or a failure."""

    __slots__ = ("_outcome", "_settled", "limit", "method")

    def __init__(self, method: str, limit: float) -> None:
        self.method = method
        self.limit = limit
        self._settled = anyio.Event()
        self._outcome: Answer | Failure | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it has ended."""
        return self._outcome is not None

    def settle(self, outcome: Answer | Failure) -> None:
        """End it; the first outcome stays."""
        if self._outcome is None:
            self._outcome = outcome
            self._settled.set()

    async def answer(self) -> Answer:
        """Wait for the answer; raise what came instead."""
        await self._settled.wait()
        assert self._outcome is not None
        if isinstance(self._outcome, Failure):
            raise copy(self._outcome)  # one failure may end many requests: each gets its own
        return self._outcome


class Waiting:
    """All requests of ours that have not ended, and the one task that watches their deadlines.

    A scope with a timer for each request would cost more than the request itself.
    """

    def __init__(self, peer: Peer, say: Callable[[bytes], None]) -> None:
        self._peer = peer
        self._say = say
        self._waiters: dict[RequestId, Waiter] = {}
        self._watched = math.inf  # the deadline that the task waits for
        self._earlier = anyio.Event()

    @contextmanager
    def expect(self, id_: RequestId, method: str, *, limit: float) -> Generator[Waiter]:
        """Wait in this block for one answer; leaving it without one gives the request up."""
        waiter = self._waiters[id_] = Waiter(method, limit)
        if self._peer.in_flight[id_].deadline < self._watched:
            self._earlier.set()
        try:
            yield waiter
        finally:
            del self._waiters[id_]
            if not waiter.is_settled:
                self._give_up(id_)

    def settle(self, answer: Answer | Refusal) -> None:
        """Hand an answer to whoever waits for it."""
        if (waiter := self._waiters.get(answer.id)) is not None:
            waiter.settle(_outcome(answer, waiter.method))

    def end(self, failure: Failure) -> None:
        """End all of them: no answer will come."""
        for waiter in tuple(self._waiters.values()):
            waiter.settle(failure)

    async def watch_deadlines(self) -> None:
        """End what is overdue, for ever."""
        while True:
            self._earlier = anyio.Event()
            self._watched = self._peer.next_deadline
            with anyio.CancelScope(deadline=self._watched):
                await self._earlier.wait()
            for id_ in self._peer.overdue(anyio.current_time()):
                self._time_out(id_)

    def _time_out(self, id_: RequestId) -> None:
        self._give_up(id_)
        if (waiter := self._waiters.get(id_)) is not None:
            waiter.settle(RequestTimedOut(method=waiter.method, limit=waiter.limit))

    def _give_up(self, id_: RequestId) -> None:
        if (farewell := self._peer.give_up(id_)) is not None:
            self._say(farewell)


def _outcome(answer: Answer | Refusal, method: str) -> Answer | Failure:
    if isinstance(answer, Answer):
        return answer
    return from_rpc_data(answer.data) or ErrorResponse(
        method=method,
        request=answer.id,
        error_code=answer.code,
        error_message=answer.message,
        error_data=answer.data,
    )
