"""Client-side supervision: connect to a host, start it when it is gone, resume by cursor.

    dial ──refused──▶ start ──▶ dial ... ──▶ attached: watch + ping
      ▲                                           │ connection lost
      └────────── delay_before(starts) ◀──────────┘ too often: HostGone

Every record is delivered exactly once: the cursor is the last sequence number seen. Commands are
repeated after a lost connection; the host recognizes them by id.

A host is unresponsive if it misses MISSES_MAX pings in a row. A ping counts as missed, too, if the
response says that the turn or the journal has made no progress for long: the task that answers
pings may be fine while another one is stuck.
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
from holdfast.host.client import HostClient, HostNews, RecordReceived, attach_host
from holdfast.host.failures import HostGone, SessionClosed
from holdfast.host.model import AttemptStarted, CloseCommand, HostCommand, SessionEnded
from holdfast.host.protocol import ClientRole
from holdfast.rpc import Transport, connect
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut, SocketRefused
from holdfast.world import BatchQueue, background_tasks

# Killing a host, however stuck it is: the journal has its state.

_GONE_LONGEST: Final = 10.0
_LOOK_AGAIN: Final = 0.01


async def end_host(path: Path, *, grace: float = 0.0) -> None:
    """Kill the process of our user that listens at a socket; return when none does.

    The kernel knows the listener (SO_PEERCRED), also if it does not respond. A host that was asked
    to close has `grace` seconds to exit by itself.
    """
    # A host closes its connections before its listener. Killed in between, it would leave its
    # socket behind and report a failure.
    kills_from = anyio.current_time() + grace
    longest = grace + _GONE_LONGEST
    with anyio.move_on_after(longest), suppress(FileNotFoundError, ConnectionRefusedError):
        while True:
            # It has just exited; its backlog is full.
            with suppress(ProcessLookupError, BlockingIOError):
                pid = listener(path)
                if anyio.current_time() >= kills_from:
                    os.kill(pid, signal.SIGKILL)
            await anyio.sleep(_LOOK_AGAIN)


def listener(path: Path) -> int:
    """Return the pid of the listener; raises FileNotFoundError or ConnectionRefusedError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.connect(str(path))
        if sys.platform != "linux":
            return connection.getsockopt(0, 2)  # macOS: SOL_LOCAL, LOCAL_PEERPID
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("=iII", credentials)[0])


MISSES_MAX: Final = 3
TURN_STUCK: Final = 120.0  # seconds without an event of the agent
JOURNAL_STUCK: Final = 10.0  # seconds for which a write has been pending


@dataclass(frozen=True, slots=True)
class PingState:
    """Missed pings in a row."""

    misses: int = 0

    @property
    def is_responsive(self) -> bool:
        """Whether the host counts as responsive."""
        return self.misses < MISSES_MAX


def answered(watched: PingState, *, turn: float, journal: float) -> PingState:
    """Return the state after a response, which may report stuck loops."""
    is_stuck = journal > JOURNAL_STUCK or turn > TURN_STUCK
    return missed(watched) if is_stuck else PingState()


def missed(watched: PingState) -> PingState:
    """Return the state after a timeout."""
    return PingState(watched.misses + 1)


# Restart policy.

STARTS_MAX: Final = 3
WITHIN: Final = 60.0  # seconds
DELAYS: Final = (0.0, 0.2, 4.0)


def delay_before(starts: Sequence[float], *, now: float) -> float | None:
    """Return the delay in seconds before the next restart; None after too many.

    `starts` are the times of earlier restarts.
    """
    recent = sum(1 for start in starts if start > now - WITHIN)
    return DELAYS[recent] if recent < STARTS_MAX else None


WaitEnded = Callable[[], Awaitable[object]]
"""Waits for the exit of a host; raises a failure if that can no longer be known."""

StartHost = Callable[[], Awaitable[WaitEnded | None]]
"""Starts the host of a session; it may not listen yet when this returns.

It may be called again while an earlier start is pending: the journal's lock lets one of two hosts
live.
"""

START_LONGEST: Final = 60.0  # seconds; the machine may be busy
PING_PAUSE: Final = 5.0  # seconds between pings
# Seconds before the process is checked: usually the host listens by then, and a check costs a
# request.
STARTED_USUALLY: Final = 1.0
_START_AGAIN: Final = 0.1
_DIAL_AGAIN: Final = 0.02
_LOST = (ConnectionLost, ConnectionClosed)
_UNKNOWN = (Kind.UNCERTAIN, Kind.LATE)  # the host may have been started


class Reconnecting(NamedTuple):
    """The host is gone; it is restarted after this delay in seconds."""

    delay: float


class Reconnected(NamedTuple):
    """Connected again; unseen records follow."""

    attempt: int


class Unresponsive(NamedTuple):
    """The host does not respond or makes no progress; see `HostSupervisor.restart`."""

    misses: int


class Responsive(NamedTuple):
    """The host makes progress again."""


class WaitingSeen(NamedTuple):
    """The turn has been waiting for a model or tool; an empty name ends it."""

    what: str
    seconds: float = 0.0


SupervisionEvent = HostNews | WaitingSeen | Reconnecting | Reconnected | Unresponsive | Responsive


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """Functions to connect to a host and to kill it."""

    connect: Callable[[Path], Awaitable[Transport]] = connect
    end: Callable[[Path], Awaitable[None]] = end_host


class HostSupervisor:
    """Keeps a client connected to a session, and delivers every record exactly once."""

    def __init__(
        self, socket: Path, start: StartHost, *, role: ClientRole, after: int, reach: HostAccess
    ) -> None:
        self._socket, self._start, self._role = socket, start, role
        self._reach = reach
        self._seen = after
        self._starts: list[float] = []  # times of restarts
        self._is_begun = False
        self._is_ended = False  # the session, by its records
        self._inbox: BatchQueue[SupervisionEvent | HostGone | SessionClosed] = BatchQueue()
        # Received, not returned yet.
        self._heard: list[SupervisionEvent | HostGone | SessionClosed] = []
        self._call: HostClient | None = None
        self._gone: HostGone | SessionClosed | None = None
        self._changed = anyio.Event()
        self._watched = PingState()
        self._awaited = WaitingSeen("")
        self._tasks: TaskGroup

    async def receive(self) -> list[SupervisionEvent]:
        """Wait for events, and return them in order.

        Raises HostGone after too many restarts, and SessionClosed when a client ended the session:
        a watching client must not restart it.
        """
        news: list[SupervisionEvent] = []
        self._heard = self._heard or await self._inbox.receive()
        for number, each in enumerate(self._heard):
            if isinstance(each, HostGone | SessionClosed):
                self._heard = self._heard[number if news else number + 1 :]
                if news:
                    # The failure is raised by the next call, after the events before it.
                    return news
                raise each
            news.append(each)
        self._heard = []
        return news

    async def command(self, command: HostCommand) -> int:
        """Execute a command exactly once; return the last sequence number when it is durable.

        Raises HostGone if there is no host, and SessionClosed if the session was ended: the records
        say whether the command was executed before.
        """
        while True:
            while self._call is None:
                if isinstance(self._gone, SessionClosed) and isinstance(command, CloseCommand):
                    return self._seen
                if self._gone is not None:
                    raise copy(self._gone)
                await self._changed.wait()
            with suppress(RequestTimedOut, *_LOST):
                return await self._call.command(command)
            await anyio.sleep(_DIAL_AGAIN)

    async def restart(self) -> None:
        """Kill the host, however stuck it is, and start another one."""
        await self._reach.end(self._socket)
        self._starts.clear()
        self._gone, self._is_ended = None, False
        self._notify()

    async def attend(self) -> None:
        """Stay connected until cancelled."""
        async with background_tasks() as self._tasks:
            await self._attend()

    async def _attend(self) -> None:
        while True:
            try:
                async with self._dialled() as call:
                    await self._sit(call)
                if self._is_ended:
                    raise SessionClosed(session=call.standing.session)
                await self._pause()
            except RequestTimedOut:  # the socket accepts, but no response comes
                await self._judge(missed(self._watched))
            except (HostGone, SessionClosed) as gone:
                self._gone = gone
                await self._inbox.put((gone,))
                self._notify()
                await self._wait_wanted()

    async def _wait_wanted(self) -> None:
        while self._gone is not None:
            await self._changed.wait()

    async def _sit(self, call: HostClient) -> None:
        """Deliver events until the connection ends."""
        self._call = call
        self._notify()
        try:
            await self._judge(PingState())
            await self._inbox.put((Reconnected(call.standing.attempt),))
            with suppress(*_LOST):
                async with background_tasks() as tasks:
                    tasks.start_soon(self._ping, call)
                    await self._listen(call)
        finally:
            self._call = None

    async def _listen(self, call: HostClient) -> None:
        async with aclosing(call.watch(after=self._seen)) as watched:
            async for news in watched:
                await self._inbox.put(self._unseen(news))

    async def _ping(self, call: HostClient) -> None:
        with suppress(*_LOST):  # `_listen` notices the lost connection, too
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
                    await self._tell_awaited(WaitingSeen(pulse.awaits, pulse.awaits_seconds))

    async def _tell_awaited(self, awaited: WaitingSeen) -> None:
        if awaited.what or self._awaited.what:
            self._awaited = awaited
            await self._inbox.put((awaited,))

    async def _judge(self, watched: PingState) -> None:
        """Emit when the host becomes unresponsive or responsive."""
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

    def _unseen(self, news: list[HostNews]) -> list[SupervisionEvent]:
        found: list[SupervisionEvent] = []
        for each in news:
            if isinstance(each, RecordReceived):
                if each.seq <= self._seen:
                    continue
                self._seen = each.seq
                if isinstance(each.record, SessionEnded | AttemptStarted):
                    self._is_ended = isinstance(each.record, SessionEnded)
            found.append(each)
        return found

    @asynccontextmanager
    async def _dialled(self) -> AsyncGenerator[HostClient]:
        """Connect to the host, or start it."""
        async with AsyncExitStack() as stack:
            try:
                call = await self._dial(stack)
            except (SocketRefused, *_LOST):
                call = await self._begun(stack)
            self._is_begun = True
            yield call

    async def _begun(self, stack: AsyncExitStack) -> HostClient:
        """Start the host, with the restart policy, until it listens."""
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

    async def _started(self) -> WaitEnded | None:
        """Start the host; retries while the exec-server is restarting."""
        deadline = anyio.current_time() + START_LONGEST
        while True:
            try:
                return await self._start()
            except Failure as failure:
                is_repeatable = failure.kind.passes or failure.kind in _UNKNOWN
                if not is_repeatable or anyio.current_time() >= deadline:
                    raise
            await anyio.sleep(_START_AGAIN)

    async def _listening(self, stack: AsyncExitStack, is_over: anyio.Event) -> HostClient | None:
        """Connect until it listens; None if it exited and no other host listens."""
        deadline = anyio.current_time() + START_LONGEST
        while anyio.current_time() < deadline:
            was_over = is_over.is_set()
            with suppress(SocketRefused, *_LOST):
                return await self._dial(stack)
            if was_over:
                return None
            await anyio.sleep(_DIAL_AGAIN)
        raise HostGone(starts=len(self._starts))

    async def _dial(self, stack: AsyncExitStack) -> HostClient:
        transport = await self._reach.connect(self._socket)
        return await stack.enter_async_context(attach_host(transport, role=self._role))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _tell_end(ended: WaitEnded, is_over: anyio.Event, scope: anyio.CancelScope) -> None:
    """Set `is_over` when a host exits that takes unusually long to listen."""
    with scope, suppress(Failure):  # if its exit cannot be known, the timeout decides
        await anyio.sleep(STARTED_USUALLY)
        await ended()
        is_over.set()


@asynccontextmanager
async def supervise_host(
    socket: Path,
    start: StartHost,
    *,
    role: ClientRole = ClientRole.LEAD,
    after: int = 0,
    reach: HostAccess | None = None,
) -> AsyncGenerator[HostSupervisor]:
    """Supervise the host of a session, from the record after `after` on."""
    seat = HostSupervisor(socket, start, role=role, after=after, reach=reach or HostAccess())
    async with background_tasks() as tasks:
        tasks.start_soon(seat.attend)
        yield seat
