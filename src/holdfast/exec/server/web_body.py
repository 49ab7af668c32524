"""A body that is told to a client as it comes, and no faster than the client takes it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass

import anyio
import msgspec
from anyio.abc import TaskStatus

from holdfast.exec.failures import HttpFailed
from holdfast.exec.server.files import encoded
from holdfast.exec.server.http_loop import WebAnswer
from holdfast.exec.wire import HttpDelta, HttpTaken
from holdfast.failures import Failure
from holdfast.rpc import Transport

Ask = Callable[[AsyncExitStack], Awaitable[WebAnswer]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take: all of it, or each piece where `is_for_each`."""

    longest: float
    is_for_each: bool


class WebBody:
    """One streamed answer, from its request to its end.

    A client that has said how much it holds unread is told no more until it has taken of it.
    """

    def __init__(
        self, name: str, transport: Transport, *, unread_bytes_max: int | None, patience: Patience
    ) -> None:
        self._name, self._transport = name, transport
        self._unread_bytes_max, self._patience = unread_bytes_max, patience
        self._told = self._taken = self._seq = 0
        self._stirred = anyio.Event()
        self._wanted = anyio.CancelScope()

    def take(self, news: HttpTaken) -> None:
        """Take note of what the client has read, or that it wants no more."""
        self._taken = max(self._taken, news.total_bytes)
        self._stirred.set()
        if news.is_over:
            self._wanted.cancel()

    async def tell(
        self, ask: Ask, url: str, *, task_status: TaskStatus[WebAnswer | HttpFailed]
    ) -> None:
        """Tell the head to whoever started this, then the body, piece by piece, to the client."""
        error, is_answered = None, False
        with self._wanted:
            try:
                with in_time(url, self._patience.longest) as clock:
                    async with AsyncExitStack() as stack:
                        answer = await ask(stack)
                        task_status.started(answer)
                        is_answered = True
                        async for piece in answer.body():
                            await self._tell_piece(piece, clock)
            except HttpFailed as failure:
                error = failure.reason
                if not is_answered:
                    task_status.started(failure)
        if is_answered:
            await self._say("", done=True, error=error)

    async def _tell_piece(self, piece: bytes, clock: anyio.CancelScope) -> None:
        before, clock.deadline = clock.deadline, math.inf  # a slow client is not the web's fault
        while self._unread_bytes_max is not None and (
            self._told - self._taken >= self._unread_bytes_max
        ):
            self._stirred = anyio.Event()
            await self._stirred.wait()
        self._told += len(piece)
        await self._say(encoded(piece), done=False)
        each = anyio.current_time() + self._patience.longest
        clock.deadline = each if self._patience.is_for_each else before

    async def _say(self, data: str, *, done: bool, error: str | None = None) -> None:
        self._seq += 1
        delta = HttpDelta(self._name, self._seq, data, done=done, error=error)
        message = {"method": "http/request/bodyDelta", "params": delta}
        with suppress(Failure):  # an ended transport tells its reader, which ends us too
            await self._transport.send([msgspec.json.encode(message)])


@contextmanager
def in_time(url: str, limit: float) -> Generator[anyio.CancelScope]:
    """Do this in time, or raise that it was not done; the deadline may be moved."""
    try:
        with anyio.fail_after(limit) as clock:
            yield clock
    except TimeoutError as error:
        reason = f"no whole answer within {limit:g} seconds"
        raise HttpFailed(url=url, reason=reason) from error
