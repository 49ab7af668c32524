"""Wait for the reply to one request with a single future, the cheapest primitive of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from types import TracebackType
from typing import Self

from holdfast.failures import Failure
from holdfast.rpc.model import Answer, RequestId


def deadline(*, after: float) -> float:
    """Return the loop time that is `after` seconds from now."""
    return asyncio.get_running_loop().time() + after


class Waiter:
    """One request of ours until its reply or failure; a context manager.

    Leaving the block without an outcome cancels the request.
    """

    __slots__ = ("_arrival", "_forget", "_outcome", "id", "limit", "method")

    def __init__(
        self, id_: RequestId, method: str, *, limit: float, forget: Callable[[Waiter], None]
    ) -> None:
        self.id, self.method, self.limit = id_, method, limit
        self._forget = forget
        self._arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outcome: Answer | Failure | None = None

    @property
    def is_settled(self) -> bool:
        return self._outcome is not None

    def settle(self, outcome: Answer | Failure) -> None:
        """Set the outcome and wake the caller; only the first call counts."""
        if self._outcome is None:
            self._outcome = outcome
            # A cancelled waiter has cancelled the future too.
            if not self._arrival.done():
                self._arrival.set_result(None)

    async def answer(self) -> Answer:
        """Wait for the reply; raises the failure that came instead."""
        await self._arrival
        assert self._outcome is not None
        if isinstance(self._outcome, Failure):
            # One failure may end many requests: each gets its own.
            raise copy(self._outcome)
        return self._outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._forget(self)
