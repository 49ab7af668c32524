"""Client of an exec-server whose processes survive the loss of its connection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from holdfast import __version__
from holdfast.exec.client.connection import Channel, ClientSession, Dialer
from holdfast.exec.client.events import EventSequence, read_event, refused
from holdfast.exec.client.files import RemoteFiles
from holdfast.exec.client.http import RemoteHttp
from holdfast.exec.client.process import EventFeed, Process
from holdfast.exec.client.recovery import RecoveryPolicy
from holdfast.exec.failures import CapabilityMissing, OutcomeUnknown, ProcessExists, StartFailed
from holdfast.exec.file_uri import uri_of
from holdfast.exec.flow_control import EVENTS_MAX
from holdfast.exec.model import ClientState, Closed, Command
from holdfast.exec.protocol import (
    EnvironmentInfo,
    ListedProcess,
    ListResult,
    ReadParams,
    ReadResult,
    ServerCapabilities,
    StartParams,
    StartResult,
    WriteParams,
    WriteResult,
)
from holdfast.failures import Failure, ungrouped
from holdfast.rpc import Connection, ConnectionConfig, HeartbeatPolicy, PeerLimits
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut
from holdfast.rpc.model import Dialect, Notification
from holdfast.world import IdMaker, SystemClock, SystemRandomSource

if TYPE_CHECKING:
    from holdfast.telemetry import Telemetry


_LOOK_AGAIN = 0.05
_PUT_DOWN_LONGEST = 1.0
_STARTING_LONGEST = 10.0
_COMMAND_CHARS_MAX = 200


async def start(
    feed: EventFeed, command: Command, channel: Channel, *, continue_if_started: bool
) -> StartResult | None:
    """Start a process; returns None for one that was found after its start was interrupted.

    If the outcome is unknown, the process is looked up with `continue_if_started`; otherwise, or if
    the caller was cancelled, it is terminated. Its id stays reserved until then.
    """
    try:
        try:
            return await channel.call("process/start", _params(feed.process, command), StartResult)
        except (OutcomeUnknown, RequestTimedOut):
            if not (continue_if_started and await _is_there(feed.process, channel)):
                await feed.terminate()
                raise
            await feed.catch_up(feed.ask)
            return None
        finally:
            feed.is_started = True
    except ErrorResponse as error:
        raise _refused(error, feed.process, command) from error
    except OutcomeUnknown as unknown:
        if channel.failure is not None:
            raise copy(channel.failure) from unknown
        raise
    except anyio.get_cancelled_exc_class():
        # Terminate before the cancelled caller closes the client, if that takes at most a second.
        with anyio.move_on_after(_PUT_DOWN_LONGEST, shield=True) as patience:
            await feed.terminate()
        if patience.cancelled_caught:
            channel.start_soon(feed.terminate)
        raise


async def _is_there(process: str, channel: Channel) -> bool:
    """Whether the server has a process; polls while it is starting, at most _STARTING_LONGEST.

    Only the status of an empty write distinguishes the three cases. Some servers report an
    interrupted start as starting for ever.
    """
    params = WriteParams(process, "", "look")
    deadline = anyio.current_time() + _STARTING_LONGEST
    while anyio.current_time() < deadline:
        answer = await channel.call("process/write", params, WriteResult, repeats=True)
        if answer.status != "starting":
            return answer.status != "unknownProcess"
        await anyio.sleep(_LOOK_AGAIN)
    return False


def _params(process: str, command: Command) -> StartParams:
    return StartParams(
        process_id=process,
        argv=command.argv,
        cwd=uri_of(os.fsencode(command.cwd)),
        env=dict(command.env),
        tty=command.tty,
        pipe_stdin=command.has_stdin,
        rows=command.rows,
        cols=command.cols,
        sandbox=None if command.sandbox is None else dict(command.sandbox),
        keep=command.keep,
    )


def _refused(error: ErrorResponse, process: str, command: Command) -> Exception:
    failure = refused(error, subject=process)
    if isinstance(failure, ProcessExists):
        return failure
    return StartFailed(
        command=" ".join(command.argv)[:_COMMAND_CHARS_MAX], reason=error.error_message
    )


_READS_MAX = 64
_SPARE = 64


class FeedTable:
    """The event feeds of one session by process id."""

    def __init__(self) -> None:
        self._feeds: dict[str, EventFeed] = {}
        self._swept_at = 0

    def add(self, feed: EventFeed) -> None:
        """Add a feed; raises `ProcessExists` if its id is in use."""
        before = self._feeds.get(feed.process)
        if before is not None and not before.is_over:
            raise ProcessExists(process=feed.process)
        # Seldom: each time all of them are looked at.
        if len(self._feeds) >= self._swept_at:
            self._feeds = {id_: each for id_, each in self._feeds.items() if not each.is_over}
            self._swept_at = 2 * len(self._feeds) + _SPARE
        self._feeds[feed.process] = feed

    def remove(self, feed: EventFeed) -> None:
        """Remove a feed; another one that took the same id since stays."""
        if self._feeds.get(feed.process) is feed:
            del self._feeds[feed.process]

    def put(self, batch: Sequence[Notification], size: int) -> None:  # noqa: ARG002  # as a Follower
        """Route the notifications of one read to their feeds."""
        for notification in batch:
            told = read_event(notification.method, notification.params)
            if told is not None and (feed := self._feeds.get(told[0])) is not None:
                feed.live(told[1])
                if isinstance(told[1], Closed) and feed.is_over:
                    self.remove(feed)

    def end(self, failure: Failure) -> None:
        """Ignore the end of a connection: the channel reconnects."""

    def fail(self, failure: Failure) -> None:
        """Fail all feeds."""
        for feed in self._feeds.values():
            feed.fail(failure)

    async def catch_up(self, connection: Connection, *, timeout: float) -> None:
        """Read all missed events after a reconnect; an error of one process fails only its feed."""

        async def ask(params: ReadParams) -> ReadResult:
            async with places:
                return await connection.request(
                    "process/read", params, timeout=timeout, result=ReadResult
                )

        async def catch_up(feed: EventFeed) -> None:
            try:
                await feed.catch_up(ask)
                await feed.acknowledge(connection)
            except Failure as failure:
                if connection.failure is not None or isinstance(failure, RequestTimedOut):
                    raise
                # Otherwise the caller of `start` finds out the outcome itself.
                if feed.is_started:
                    feed.fail(failure)

        places = anyio.CapacityLimiter(_READS_MAX)
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                for feed in self._feeds.values():
                    tasks.start_soon(catch_up, feed)


CLIENT_NAME = f"holdfast/{__version__}"
UNREAD_BYTES_MAX = 1024 * 1024
_IN_FLIGHT_MAX = 10_000


class Client:
    """One session with one exec-server, as an async context manager.

    Connections may come and go: calls wait and processes go on. Once the client has failed, all
    calls and processes get that failure; connect again for a new session.
    """

    def __init__(  # noqa: PLR0913  # the public face: all by keyword, all with a default
        self,
        dial: Dialer,
        *,
        policy: RecoveryPolicy | None = None,
        heartbeat_policy: HeartbeatPolicy | None = None,
        telemetry: Telemetry | None = None,
        ids: IdMaker | None = None,
        unread_bytes_max: int = UNREAD_BYTES_MAX,
        label: str = "",
    ) -> None:
        """Connect through `dial`; `heartbeat_policy` is for transports that do not detect silence.

        An operator can end the session by its `label`. About twice `unread_bytes_max` and a page
        are buffered per process for a slow reader.
        """
        self._policy = policy or RecoveryPolicy()
        self._unread_bytes_max = unread_bytes_max
        self._ids = ids or IdMaker(SystemClock(), SystemRandomSource())
        config = ConnectionConfig(
            limits=PeerLimits(in_flight_max=_IN_FLIGHT_MAX),
            dialect=Dialect(),
            telemetry=telemetry,
            peer="exec-server",
        )
        self._channel = Channel(
            dial, self._greet, policy=self._policy, config=config, heartbeat_policy=heartbeat_policy
        )
        self._session = ClientSession(CLIENT_NAME, unread_bytes_max=unread_bytes_max, label=label)
        self._table = FeedTable()
        self._tasks: TaskGroup = anyio.create_task_group()
        self._life = anyio.CancelScope(shield=True)
        self.files = RemoteFiles(self._channel, self._ids)
        self.http = RemoteHttp(self._channel, self._ids)

    @property
    def state(self) -> ClientState:
        """Connected, recovering or failed."""
        return self._channel.state

    @property
    def failure(self) -> Failure | None:
        """The failure that ended the client; None while it may recover."""
        return self._channel.failure

    @property
    def session_id(self) -> str | None:
        """The session id at the server; any client that knows it can take the session over."""
        return self._session.id

    @property
    def environment(self) -> EnvironmentInfo | None:
        """Description of the server's machine, if the server sent one."""
        return self._session.environment

    @property
    def capabilities(self) -> ServerCapabilities:
        """Optional methods of the server."""
        return self._session.capabilities

    async def start(
        self, command: Command, *, process_id: str | None = None, continue_if_started: bool = False
    ) -> Process:
        """Start a process; returns once it runs, or raises why it does not.

        If the connection breaks meanwhile the process is terminated and `OutcomeUnknown` is raised;
        with `continue_if_started` it is looked up, and continued if it exists.
        """
        feed = self._feed(process_id or str(self._ids.make("process")))
        process = Process(command, feed, self._channel, self._session)
        try:
            begun = await start(
                feed, command, self._channel, continue_if_started=continue_if_started
            )
        except Failure:
            self._table.remove(feed)
            raise
        process.was_continued = begun is None
        if begun is not None:
            process.sandbox_strength, process.sandbox_lacks = (
                begun.sandbox_strength,
                begun.sandbox_lacks,
            )
        return process

    def resume(self, session_id: str) -> Self:
        """Resume a session instead of starting one; call before `async with`."""
        self._session.id = session_id
        return self

    async def follow(self, listed: ListedProcess, *, after: int = 0) -> Process:
        """Follow a process of the session that another client started, after an event of it."""
        feed = self._feed(listed.process_id, after=after)
        feed.is_started = True
        command = Command(listed.argv, cwd="", env={}, tty=listed.tty, has_stdin=True)
        writer = f"-{self._ids.make('writer')}"
        process = Process(command, feed, self._channel, self._session, writer=writer)
        await feed.catch_up(feed.ask)
        await feed.acknowledge(await self._channel.wait_connected())
        return process

    async def processes(self) -> tuple[ListedProcess, ...]:
        """Return all processes of the session, oldest first; raises `CapabilityMissing`."""
        if not self.capabilities.list:
            raise CapabilityMissing(capability="list")
        return (await self._channel.call("process/list", {}, ListResult)).processes

    async def wait_state(self, state: ClientState) -> None:
        """Wait for a state; a short-lived state may be missed."""
        await self._channel.wait_state(state)

    async def wait_failed(self) -> Failure:
        """Wait until the client has failed for good; returns the failure."""
        return await self._channel.wait_failed()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._live)
        is_connected = False
        try:
            await self._channel.wait_connected()
            is_connected = True
        finally:
            if not is_connected:
                self._end()
                with ungrouped():
                    await self._tasks.__aexit__(None, None, None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._end()
        with ungrouped():
            if kind is None or issubclass(kind, anyio.get_cancelled_exc_class()):
                return await self._tasks.__aexit__(kind, error, trace)
            # The body's own error goes on as it is, in no group.
            await self._tasks.__aexit__(None, None, None)
            return False

    async def _greet(self, connection: Connection) -> None:
        """Prepare a connection: subscribe before the session resumes, then read what was missed."""
        connection.follow(self._table)
        connection.follow(self.http)
        await self._session.introduce(connection, timeout=self._policy.answer_longest)
        await self._table.catch_up(connection, timeout=self._policy.answer_longest)

    def _feed(self, process: str, *, after: int = 0) -> EventFeed:
        held = self._unread_bytes_max
        sequence = EventSequence(process, held_max=EVENTS_MAX, held_bytes_max=held, after=after)
        feed = EventFeed(sequence, self._channel, self._session)
        self._table.add(feed)
        return feed

    async def _live(self) -> None:
        """Keep the channel open to the end: a cancelled caller may still have processes to
        terminate.
        """
        with self._life, ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._channel.run, tasks)
                tasks.start_soon(self._fail_processes)

    async def _fail_processes(self) -> None:
        self._table.fail(await self._channel.wait_failed())

    def _end(self) -> None:
        self._channel.close()
        assert self._channel.failure is not None
        self._table.fail(self._channel.failure)
        self._life.cancel()
        self._tasks.cancel_scope.cancel()
