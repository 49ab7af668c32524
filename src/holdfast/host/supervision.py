"""Stay with a session whatever happens to its host: dial it, or start it, and go on.

Decide from answers to pings whether a host still does its work.

A loop that makes no progress counts as missed, even if whoever reads the socket answers.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from anyio.abc import TaskGroup

from holdfast.failures import Failure, Kind
from holdfast.host.client import Call, Kept, News, called
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import Begun, Close, Closed, Command
from holdfast.host.protocol import Role
from holdfast.rpc import Transport, connect
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut, SocketRefused
from holdfast.world import Inbox, companions

# End the host of a session however stuck it is: what it knew is in the journal.

_GONE_LONGEST: Final = 10.0
_LOOK_AGAIN: Final = 0.01


async def end_host(path: Path, *, grace: float = 0.0) -> None:
    """Kill whoever of our own user listens at a socket; return once nobody does.

    The kernel knows who listens, also if they answer nothing. Nobody there is as good. A host that
    was asked to close has `grace` seconds to go by itself.
    """
    # A host hangs up before it stops to listen: killed in between, it would leave its socket
    # behind and end with a status as if it had been stuck.
    kills_from = anyio.current_time() + grace
    longest = grace + _GONE_LONGEST
    with anyio.move_on_after(longest), suppress(FileNotFoundError, ConnectionRefusedError):
        while True:
            with suppress(ProcessLookupError, BlockingIOError):  # it has just ended; it is busy
                pid = listener(path)
                if anyio.current_time() >= kills_from:
                    os.kill(pid, signal.SIGKILL)
            await anyio.sleep(_LOOK_AGAIN)


def listener(path: Path) -> int:
    """The process that listens at a socket; raises FileNotFoundError or ConnectionRefusedError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.connect(str(path))
        if sys.platform != "linux":
            return connection.getsockopt(0, 2)  # SOL_LOCAL, LOCAL_PEERPID
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("=iII", credentials)[0])


MISSES_MAX: Final = 3
TURN_STUCK: Final = 120.0  # seconds without a word from the agent
JOURNAL_STUCK: Final = 10.0  # seconds that a record has been on its way to the disk


@dataclass(frozen=True, slots=True)
class Watched:
    """How often in a row it did not answer as it should."""

    misses: int = 0

    @property
    def is_responsive(self) -> bool:
        """Whether there is reason to go on waiting."""
        return self.misses < MISSES_MAX


def answered(watched: Watched, *, turn: float, journal: float) -> Watched:
    """It has answered, and says for how long each loop has made no progress."""
    is_stuck = journal > JOURNAL_STUCK or turn > TURN_STUCK
    return missed(watched) if is_stuck else Watched()


def missed(watched: Watched) -> Watched:
    """It has not answered in time."""
    return Watched(watched.misses + 1)


# Decide whether and when a host that died is started again.

STARTS_MAX: Final = 3
WITHIN: Final = 60.0  # seconds
DELAYS: Final = (0.0, 0.2, 4.0)


def delay_before(starts: Sequence[float], *, now: float) -> float | None:
    """How long to wait before the next start; None if it was started too often lately.

    `starts` are the times at which it was started again before.
    """
    recent = sum(1 for start in starts if start > now - WITHIN)
    return DELAYS[recent] if recent < STARTS_MAX else None


Ended = Callable[[], Awaitable[object]]
"""Waits for the end of a host; raises a failure if that cannot be known any more."""

Start = Callable[[], Awaitable[Ended | None]]
"""Starts the host of a session, which need not listen yet when this returns.

It may be called again before it is known what came of an earlier call: of two hosts one ends.
"""

START_LONGEST: Final = 60.0  # a machine can be busy
PING_PAUSE: Final = 5.0  # between two pings
STARTED_USUALLY: Final = 1.0  # after which it is asked whether who was started still lives
_START_AGAIN: Final = 0.1
_DIAL_AGAIN: Final = 0.02
_LOST = (ConnectionLost, ConnectionClosed)
_UNKNOWN = (Kind.UNCERTAIN, Kind.LATE)  # it may have been started


class Reconnecting(NamedTuple):
    """The host is gone; it is started again after so many seconds."""

    delay: float


class Reconnected(NamedTuple):
    """The host is there again; what follows is what nobody has seen yet."""

    attempt: int


class Unresponsive(NamedTuple):
    """The host is there and does not do its work; `Seat.restart` puts another in its place."""

    misses: int


class Responsive(NamedTuple):
    """The host that was unresponsive does its work again."""


class Awaited(NamedTuple):
    """The turn waits for a model or a tool, for so many seconds; nothing, with an empty name."""

    what: str
    seconds: float = 0.0


Seen = News | Awaited | Reconnecting | Reconnected | Unresponsive | Responsive


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How a host is reached: dialled at its socket, and ended however stuck it is."""

    connect: Callable[[Path], Awaitable[Transport]] = connect
    end: Callable[[Path], Awaitable[None]] = end_host


class Seat:
    """A place at a session: one may lead it or watch it, and hears everything exactly once."""

    def __init__(self, socket: Path, start: Start, *, role: Role, after: int, reach: Reach) -> None:
        self._socket, self._start, self._role = socket, start, role
        self._reach = reach
        self._seen = after
        self._starts: list[float] = []  # again
        self._is_begun = False
        self._is_ended = False  # the session, by what we have heard
        self._inbox: Inbox[Seen | HostGone | SessionClosed] = Inbox()
        self._heard: list[Seen | HostGone | SessionClosed] = []  # and not returned yet
        self._call: Call | None = None
        self._gone: HostGone | SessionClosed | None = None
        self._stirred = anyio.Event()
        self._watched = Watched()
        self._awaited = Awaited("")
        self._tasks: TaskGroup

    async def receive(self) -> list[Seen]:
        """Wait for what has happened, in order.

        Raises HostGone when the host was started too often, and SessionClosed when somebody has
        ended the session: nobody who only sits there takes it up again.
        """
        news: list[Seen] = []
        self._heard = self._heard or await self._inbox.receive()
        for number, each in enumerate(self._heard):
            if isinstance(each, HostGone | SessionClosed):
                self._heard = self._heard[number if news else number + 1 :]
                if news:
                    return news  # which comes first, and the end at the next look
                raise each
            news.append(each)
        self._heard = []
        return news

    async def command(self, command: Command) -> int:
        """Have something done, once, whatever happens meanwhile; return up to which record.

        Raises HostGone if nobody is there to do it, and will not be by itself; SessionClosed if
        somebody has ended the session: what is kept says whether it was done before.
        """
        while True:
            while self._call is None:
                if isinstance(self._gone, SessionClosed) and isinstance(command, Close):
                    return self._seen
                if self._gone is not None:
                    raise copy(self._gone)
                await self._stirred.wait()
            with suppress(RequestTimedOut, *_LOST):
                return await self._call.command(command)
            await anyio.sleep(_DIAL_AGAIN)

    async def restart(self) -> None:
        """End the host, however stuck it is, and start another: it knows all that is kept."""
        await self._reach.end(self._socket)
        self._starts.clear()
        self._gone, self._is_ended = None, False
        self._stir()

    async def attend(self) -> None:
        """Stay connected, whatever that takes."""
        async with companions() as self._tasks:
            await self._attend()

    async def _attend(self) -> None:
        while True:
            try:
                async with self._dialled() as call:
                    await self._sit(call)
                if self._is_ended:
                    raise SessionClosed(session=call.standing.session)
                await self._pause()
            except RequestTimedOut:  # somebody listens, and nobody answers
                await self._judge(missed(self._watched))
            except (HostGone, SessionClosed) as gone:
                self._gone = gone
                await self._inbox.put((gone,))
                self._stir()
                await self._wait_wanted()

    async def _wait_wanted(self) -> None:
        while self._gone is not None:
            await self._stirred.wait()

    async def _sit(self, call: Call) -> None:
        """Hear everything until the connection ends."""
        self._call = call
        self._stir()
        try:
            await self._judge(Watched())
            await self._inbox.put((Reconnected(call.standing.attempt),))
            with suppress(*_LOST):
                async with companions() as tasks:
                    tasks.start_soon(self._ping, call)
                    await self._listen(call)
        finally:
            self._call = None

    async def _listen(self, call: Call) -> None:
        async with aclosing(call.watch(after=self._seen)) as watched:
            async for news in watched:
                await self._inbox.put(self._unseen(news))

    async def _ping(self, call: Call) -> None:
        with suppress(*_LOST):  # whoever listens hears that, too
            while True:
                await anyio.sleep(PING_PAUSE)
                try:
                    pulse = await call.ping()
                except RequestTimedOut:
                    await self._judge(missed(self._watched))
                else:
                    await self._judge(
                        answered(self._watched, turn=pulse.turn, journal=pulse.journal)
                    )
                    await self._tell_awaited(Awaited(pulse.awaits, pulse.awaits_seconds))

    async def _tell_awaited(self, awaited: Awaited) -> None:
        if awaited.what or self._awaited.what:
            self._awaited = awaited
            await self._inbox.put((awaited,))

    async def _judge(self, watched: Watched) -> None:
        """Say so when it becomes unresponsive, and when it is no longer."""
        before, self._watched = self._watched, watched
        if before.is_responsive and not watched.is_responsive:
            await self._inbox.put((Unresponsive(watched.misses),))
        elif watched.is_responsive and not before.is_responsive:
            await self._inbox.put((Responsive(),))

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
                if isinstance(each.record, Closed | Begun):
                    self._is_ended = isinstance(each.record, Closed)
            found.append(each)
        return found

    @asynccontextmanager
    async def _dialled(self) -> AsyncGenerator[Call]:
        """Dial the host; if nobody is there, start it."""
        async with AsyncExitStack() as stack:
            try:
                call = await self._dial(stack)
            except (SocketRefused, *_LOST):
                call = await self._begun(stack)
            self._is_begun = True
            yield call

    async def _begun(self, stack: AsyncExitStack) -> Call:
        """Start it, and again, as seldom as any that died, if it does so before it listens."""
        while True:
            if self._is_begun:
                self._starts.append(anyio.current_time())
            self._is_begun = True
            is_over, watching = anyio.Event(), anyio.CancelScope()
            ended = await self._started()
            if ended is not None:
                self._tasks.start_soon(_tell_end, ended, is_over, watching)
            try:
                call = await self._listening(stack, is_over)
            finally:
                watching.cancel()
            if call is not None:
                return call
            await self._pause()

    async def _started(self) -> Ended | None:
        """Start it, also if what it runs on has just died and is not there again."""
        deadline = anyio.current_time() + START_LONGEST
        while True:
            try:
                return await self._start()
            except Failure as failure:
                is_repeatable = failure.kind.passes or failure.kind in _UNKNOWN
                if not is_repeatable or anyio.current_time() >= deadline:
                    raise
            await anyio.sleep(_START_AGAIN)

    async def _listening(self, stack: AsyncExitStack, is_over: anyio.Event) -> Call | None:
        """Dial until it listens; None if it is over, and nobody else listens in its place."""
        deadline = anyio.current_time() + START_LONGEST
        while anyio.current_time() < deadline:
            was_over = is_over.is_set()
            with suppress(SocketRefused, *_LOST):
                return await self._dial(stack)
            if was_over:
                return None
            await anyio.sleep(_DIAL_AGAIN)
        raise HostGone(starts=len(self._starts))

    async def _dial(self, stack: AsyncExitStack) -> Call:
        transport = await self._reach.connect(self._socket)
        return await stack.enter_async_context(called(transport, role=self._role))

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = anyio.Event()


async def _tell_end(ended: Ended, is_over: anyio.Event, scope: anyio.CancelScope) -> None:
    """Say when a host is over that takes longer to listen than they usually do."""
    with scope, suppress(Failure):  # one that nobody can tell of is waited for
        await anyio.sleep(STARTED_USUALLY)
        await ended()
        is_over.set()


@asynccontextmanager
async def seated(
    socket: Path,
    start: Start,
    *,
    role: Role = Role.LEAD,
    after: int = 0,
    reach: Reach | None = None,
) -> AsyncGenerator[Seat]:
    """Sit at a session for the length of the block, from the record that follows `after` on."""
    seat = Seat(socket, start, role=role, after=after, reach=reach or Reach())
    async with companions() as tasks:
        tasks.start_soon(seat.attend)
        yield seat
