"""A client whose processes survive the loss of its connection."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from holdfast import __version__
from holdfast.exec.core.credit import EVENTS_MAX
from holdfast.exec.core.recovery import Policy
from holdfast.exec.core.sequence import Sequence
from holdfast.exec.failures import CapabilityMissing
from holdfast.exec.feed import Feed
from holdfast.exec.files import Files
from holdfast.exec.line import Dialer, Line
from holdfast.exec.model import Command, State
from holdfast.exec.process import Process
from holdfast.exec.session import Session
from holdfast.exec.starting import start
from holdfast.exec.table import Table
from holdfast.exec.web import Web
from holdfast.exec.wire import Capabilities, EnvironmentInfo, ListedProcess, ListResult
from holdfast.failures import Failure, ungrouped
from holdfast.rpc import Connection, Limits, Rhythm, Terms
from holdfast.rpc.model import Dialect
from holdfast.world import IdMaker, SystemChance, SystemClock

if TYPE_CHECKING:
    from holdfast.telemetry import Telemetry

CLIENT_NAME = f"holdfast/{__version__}"
UNREAD_BYTES_MAX = 1024 * 1024
_IN_FLIGHT_MAX = 10_000


class Client:
    """One session with one exec-server, from `async with` to its end.

    Connections may come and go: calls wait, processes go on, and nobody above notices. Once it
    has failed, everything that was asked and every process got that one failure, and it stays
    failed; connect anew for a new session.
    """

    def __init__(  # noqa: PLR0913  # the public face: all by keyword, all with a default
        self,
        dial: Dialer,
        *,
        policy: Policy | None = None,
        rhythm: Rhythm | None = None,
        telemetry: Telemetry | None = None,
        ids: IdMaker | None = None,
        unread_bytes_max: int = UNREAD_BYTES_MAX,
        label: str = "",
    ) -> None:
        """Connect through `dial`; `rhythm` is for transports that notice no silence themselves.

        An operator can end the session by its `label`. Of each process about twice
        `unread_bytes_max` and a page are held for a slow reader.
        """
        self._policy = policy or Policy()
        self._unread_bytes_max = unread_bytes_max
        self._ids = ids or IdMaker(SystemClock(), SystemChance())
        terms = Terms(
            limits=Limits(in_flight_max=_IN_FLIGHT_MAX),
            dialect=Dialect(),
            telemetry=telemetry,
            peer="exec-server",
        )
        self._line = Line(dial, self._greet, policy=self._policy, terms=terms, rhythm=rhythm)
        self._session = Session(CLIENT_NAME, unread_bytes_max=unread_bytes_max, label=label)
        self._table = Table()
        self._tasks: TaskGroup = anyio.create_task_group()
        self._life = anyio.CancelScope(shield=True)
        self.files = Files(self._line, self._ids)
        self.http = Web(self._line, self._ids)

    @property
    def state(self) -> State:
        """Connected, recovering or failed."""
        return self._line.state

    @property
    def failure(self) -> Failure | None:
        """What it failed with; None while it may go on."""
        return self._line.failure

    @property
    def session_id(self) -> str | None:
        """The session at the server; whoever knows it can take it over."""
        return self._session.id

    @property
    def environment(self) -> EnvironmentInfo | None:
        """What the server told about its machine, if it did."""
        return self._session.environment

    @property
    def capabilities(self) -> Capabilities:
        """What the server can do beyond the common ground."""
        return self._session.capabilities

    async def start(
        self, command: Command, *, process_id: str | None = None, continue_if_started: bool = False
    ) -> Process:
        """Start a process; return once it runs, or raise why it does not.

        If the connection breaks meanwhile, whatever was started is ended and its outcome called
        unknown; with `continue_if_started` it is looked up, and continued if it is there.
        """
        feed = self._feed(process_id or str(self._ids.make("process")))
        process = Process(command, feed, self._line, self._session)
        try:
            begun = await start(feed, command, self._line, continue_if_started=continue_if_started)
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
        """Take up that session instead of beginning one; to be said before `async with`."""
        self._session.id = session_id
        return self

    async def follow(self, listed: ListedProcess, *, after: int = 0) -> Process:
        """Take up a process of the session that another client started, after an event of it."""
        feed = self._feed(listed.process_id, after=after)
        feed.is_started = True
        command = Command(listed.argv, cwd="", env={}, tty=listed.tty, has_stdin=True)
        writer = f"-{self._ids.make('writer')}"
        process = Process(command, feed, self._line, self._session, writer=writer)
        await feed.catch_up(feed.ask)
        await feed.tell_taken(await self._line.wait_connected())
        return process

    async def processes(self) -> tuple[ListedProcess, ...]:
        """All processes of the session, oldest first, where the server can list them."""
        if not self.capabilities.list:
            raise CapabilityMissing(capability="list")
        return (await self._line.call("process/list", {}, ListResult)).processes

    async def wait_state(self, state: State) -> None:
        """Wait until it stands so; a state may pass unseen."""
        await self._line.wait_state(state)

    async def wait_failed(self) -> Failure:
        """Wait until it has failed for good, and say why."""
        return await self._line.wait_failed()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._live)
        is_connected = False
        try:
            await self._line.wait_connected()
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
        """Make a connection fit for use: it is heard before the session speaks again."""
        connection.follow(self._table)
        connection.follow(self.http)
        await self._session.introduce(connection, timeout=self._policy.answer_longest)
        await self._table.catch_up(connection, timeout=self._policy.answer_longest)

    def _feed(self, process: str, *, after: int = 0) -> Feed:
        held = self._unread_bytes_max
        sequence = Sequence(process, held_max=EVENTS_MAX, held_bytes_max=held, after=after)
        feed = Feed(sequence, self._line, self._session)
        self._table.add(feed)
        return feed

    async def _live(self) -> None:
        """Keep the line up to the end: who is cancelled may still have processes to end."""
        with self._life, ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._line.run, tasks)
                tasks.start_soon(self._mourn)

    async def _mourn(self) -> None:
        self._table.fail(await self._line.wait_failed())

    def _end(self) -> None:
        self._line.close()
        assert self._line.failure is not None
        self._table.fail(self._line.failure)
        self._life.cancel()
        self._tasks.cancel_scope.cancel()
