"""Stay with a session whatever happens to its host: dial it, or start it, and go on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from holdfast.host.core.respawning import delay_before
from holdfast.host.dialling import Call, Kept, News, calling
from holdfast.host.failures import HostGone
from holdfast.host.model import Command
from holdfast.host.protocol import Role
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, SocketRefused
from holdfast.world import Inbox, companions

Start = Callable[[], Awaitable[None]]
"""Starts the host of a session; it need not listen yet when this returns."""

START_LONGEST: Final = 20.0
_DIAL_AGAIN: Final = 0.02
_LOST = (ConnectionLost, ConnectionClosed)


class Reconnecting(NamedTuple):
    """The host is gone; it is started again after so many seconds."""

    delay: float


class Reconnected(NamedTuple):
    """The host is there again; what follows is what nobody has seen yet."""

    attempt: int


Seen = News | Reconnecting | Reconnected


class Seat:
    """A place at a session: one may lead it or watch it, and hears everything exactly once."""

    def __init__(self, socket: Path, start: Start, *, role: Role, after: int) -> None:
        self._socket, self._start, self._role = socket, start, role
        self._seen = after
        self._starts: list[float] = []
        self._inbox: Inbox[Seen | HostGone] = Inbox()
        self._call: Call | None = None
        self._called = anyio.Event()

    async def receive(self) -> list[Seen]:
        """Wait for what has happened, in order; raise HostGone when it was started too often."""
        news: list[Seen] = []
        for each in await self._inbox.receive():
            if isinstance(each, HostGone):
                raise each
            news.append(each)
        return news

    async def command(self, command: Command) -> int:
        """Have something done, once, whatever happens meanwhile; return up to which record."""
        while True:
            while self._call is None:
                await self._called.wait()
            with suppress(*_LOST):
                return await self._call.command(command)
            await anyio.sleep(_DIAL_AGAIN)

    async def attend(self) -> None:
        """Stay connected, until that makes no more sense."""
        try:
            while True:
                async with self._dialled() as call:
                    self._call = call
                    self._called.set()
                    await self._inbox.put((Reconnected(call.standing.attempt),))
                    with suppress(*_LOST):
                        await self._listen(call)
                    self._call, self._called = None, anyio.Event()
                await self._pause()
        except HostGone as gone:
            await self._inbox.put((gone,))

    async def _listen(self, call: Call) -> None:
        async with aclosing(call.watch(after=self._seen)) as watched:
            async for news in watched:
                await self._inbox.put(self._unseen(news))

    async def _pause(self) -> None:
        delay = delay_before(self._starts, now=anyio.current_time())
        if delay is None:
            raise HostGone(starts=len(self._starts))
        await self._inbox.put((Reconnecting(delay),))
        await anyio.sleep(delay)

    def _unseen(self, news: list[News]) -> list[Seen]:
        found: list[Seen] = []
        for each in news:
            if isinstance(each, Kept):
                if each.seq <= self._seen:
                    continue
                self._seen = each.seq
            found.append(each)
        return found

    @asynccontextmanager
    async def _dialled(self) -> AsyncGenerator[Call]:
        """Dial the host; if nobody is there, start it."""
        async with AsyncExitStack() as stack:
            try:
                call = await stack.enter_async_context(calling(self._socket, role=self._role))
            except (SocketRefused, *_LOST):
                self._starts.append(anyio.current_time())
                await self._start()
                call = await self._listening(stack)
            yield call

    async def _listening(self, stack: AsyncExitStack) -> Call:
        deadline = anyio.current_time() + START_LONGEST
        while anyio.current_time() < deadline:
            with suppress(SocketRefused, *_LOST):
                return await stack.enter_async_context(calling(self._socket, role=self._role))
            await anyio.sleep(_DIAL_AGAIN)
        raise HostGone(starts=len(self._starts))


@asynccontextmanager
async def seated(
    socket: Path, start: Start, *, role: Role = Role.LEAD, after: int = 0
) -> AsyncGenerator[Seat]:
    """Sit at a session for the length of the block, from the record that follows `after` on."""
    seat = Seat(socket, start, role=role, after=after)
    async with companions() as tasks:
        tasks.start_soon(seat.attend)
        yield seat
