"""Our requests that wait for an answer: every one ends, by its deadline at the latest."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio

from holdfast.failures import Failure, from_rpc_data
from holdfast.rpc.core.peer import Peer
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut
from holdfast.rpc.model import Answer, Refusal, RequestId
from holdfast.rpc.waiter_loop import Waiter


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

    def expect(self, id_: RequestId, method: str, *, limit: float) -> Waiter:
        """Wait for one answer in the block that the waiter opens."""
        waiter = Waiter(id_, method, limit=limit, forget=self._forget)
        self._waiters[id_] = waiter
        if self._peer.in_flight[id_].deadline < self._watched:
            self._earlier.set()
        return waiter

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

    def _forget(self, waiter: Waiter) -> None:
        del self._waiters[waiter.id]
        if not waiter.is_settled:
            self._give_up(waiter.id)

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
