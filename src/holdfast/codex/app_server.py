"""A connection with a Codex app-server."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from holdfast import __version__
from holdfast.codex.approvals import Approvals
from holdfast.codex.calls import Calls
from holdfast.codex.core.events import read_event
from holdfast.codex.environment import inherited
from holdfast.codex.failures import (
    CodexInitRejected,
    CodexInitTimeout,
    CodexNotFound,
    CodexStartupFailed,
)
from holdfast.codex.following import Router
from holdfast.codex.locate import native_program
from holdfast.codex.model import Event, Health, Hook, State
from holdfast.codex.thread import Thread
from holdfast.codex.wire.generated import (
    AskForApproval,
    ClientInfo,
    InitializeCapabilities,
    InitializeParams,
    SandboxMode,
    ThreadForkParams,
    ThreadForkResponse,
    ThreadResumeInitialTurnsPageParams,
    ThreadResumeParams,
    ThreadResumeResponse,
    ThreadStartParams,
    ThreadStartResponse,
)
from holdfast.codex.wire.reading import read_anything
from holdfast.failures import Failure
from holdfast.rpc import (
    ChildTransport,
    Command,
    Connection,
    Gate,
    Limits,
    Overflow,
    Terms,
    Transport,
    spawn,
)
from holdfast.rpc.failures import (
    CommandNotFound,
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    RequestTimedOut,
)
from holdfast.rpc.model import Dialect
from holdfast.telemetry import Telemetry
from holdfast.world import Chance, SystemChance, SystemClock

_INITIALIZE = "initialize"
_HEALTH_LIMIT = 5.0
_LAST_TURN = ThreadResumeInitialTurnsPageParams("notLoaded", limit=1, sort_direction="desc")


class AppServer:
    """One connection with one app-server: threads, raw requests, news and health.

    It never reconnects: what a server had in memory is gone with it. Connect again and resume.
    """

    def __init__(self, connection: Connection, calls: Calls, router: Router) -> None:
        self._connection = connection
        self._calls = calls
        self._router = router

    @classmethod
    @asynccontextmanager
    async def connect(  # noqa: PLR0913  # the public face: all by keyword, all with a default
        cls,
        *,
        command: Sequence[str] = ("codex", "app-server"),
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        transport: Transport | None = None,
        approvals: Hook | None = None,
        init_timeout: float = 10.0,
        max_in_flight: int = 100,
        message_bytes_max: int = 100 * 2**20,
        approval_timeout: float = 30.0,
        telemetry: Telemetry | None = None,
        chance: Chance | None = None,
    ) -> AsyncGenerator[AppServer]:
        """Start an app-server, or take a transport to one, and introduce ourselves.

        The server ends with the block. Without a hook every approval is declined. `chance` decides
        how long to wait before an overloaded server is asked again.
        """
        telemetry = telemetry or Telemetry([], clock=SystemClock())
        router = Router(telemetry)
        asking = Approvals(
            hook=approvals,
            patience=approval_timeout,
            changes=lambda thread, item: router.followed(thread).turns.changes_of(item),
            telemetry=telemetry,
        )
        terms = Terms(
            limits=Limits(in_flight_max=max_in_flight, message_bytes_max=message_bytes_max),
            dialect=Dialect(),
            service=asking.service(),
            calls=Gate(method=_INITIALIZE),
            telemetry=telemetry,
            peer="codex",
        )
        way = transport or await _started(command, cwd, env, message_bytes_max)
        async with Connection(way, terms) as connection:
            connection.follow(router)
            await _introduce(connection, way, terms.calls, init_timeout)
            yield cls(connection, Calls(connection, telemetry, chance or SystemChance()), router)

    @property
    def state(self) -> State:
        """Where the connection stands."""
        failure = self._connection.failure
        if failure is None:
            return State.CONNECTED
        return State.CLOSED if isinstance(failure, ConnectionClosed) else State.CRASHED

    @property
    def failure(self) -> Failure | None:
        """What ended the connection; None while it stands."""
        return self._connection.failure

    @property
    def is_intelligible(self) -> bool:
        """Whether what the server says makes sense; ten malformed messages in a row do not."""
        return self._connection.failure is not None or self._connection.healthy

    async def start_thread(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        approval_policy: AskForApproval | None = None,
        sandbox: SandboxMode | None = None,
        model: str | None = None,
        more: ThreadStartParams | None = None,
    ) -> Thread:
        """Begin a conversation; it can be resumed once its first turn has begun."""
        params = msgspec.structs.replace(
            more or ThreadStartParams(),
            cwd=None if cwd is None else os.fspath(cwd),
            approval_policy=approval_policy,
            sandbox=sandbox,
            model=model,
        )
        started = await self._calls.typed("thread/start", params, ThreadStartResponse)
        return self._thread(started.thread.id, started.thread.path)

    async def resume_thread(self, thread: str, *, cwd: str | None = None) -> Thread:
        """Continue a conversation, also one that another connection began, where it was or here.

        History and id survive the loss of a connection. The running turn does only where the
        server outlives the connection; then `active_turn` is set and `follow` yields the rest.
        """
        followed = self._router.followed(thread)
        params = ThreadResumeParams(
            thread, cwd=cwd, exclude_turns=True, initial_turns_page=_LAST_TURN
        )
        resumed = await self._calls.typed("thread/resume", params, ThreadResumeResponse)
        page = resumed.initial_turns_page
        for turn in page.data if page is not None else ():
            if turn.status == "inProgress":
                followed.turns.found(turn.id)
        return self._thread(resumed.thread.id, resumed.thread.path)

    async def fork_thread(self, thread: str, *, cwd: str | None = None) -> Thread:
        """Begin another conversation that knows all that was said in one so far, there or here.

        It is kept at once, and can be resumed as any other; the first one stays as it is.
        """
        params = ThreadForkParams(thread, cwd=cwd, exclude_turns=True)
        forked = await self._calls.typed("thread/fork", params, ThreadForkResponse)
        return self._thread(forked.thread.id, forked.thread.path)

    async def request(
        self, method: str, params: object = None, *, timeout: float | None = None
    ) -> object:
        """Ask anything and return the answer as plain JSON values.

        Without a timeout each method has a limit of its own. Only a request that the server was
        too busy to look at is made again.
        """
        answer = await self._calls.raw(method, params, timeout=timeout)
        return read_anything(method, answer)

    async def notifications(
        self, *, overflow: Overflow = Overflow.END, items_max: int = 100_000
    ) -> AsyncIterator[Event]:
        """Yield every notification from now on, unknown ones included, until the connection ends.

        A reader that is too slow ends with a failure, or with `Overflow.DROP_OLDEST` misses what
        it was too slow for.
        """
        with self._connection.subscribe(overflow=overflow, items_max=items_max) as news:
            async for notification in news:
                yield read_event(notification)

    async def health(self) -> Health:
        """Say whether the server answers within five seconds; never raises."""
        if not self.is_intelligible:
            return Health(False, "too much of what it sends makes no sense")
        try:
            await self._connection.request(  # once: a server too busy to look is not healthy
                "thread/list", {"limit": 1, "useStateDbOnly": True}, timeout=_HEALTH_LIMIT
            )
        except Failure as failure:
            return Health(False, failure.user_message, failure)
        return Health(True)

    def _thread(self, thread: str, path: str | None) -> Thread:
        return Thread(thread, self._calls, self._router.followed(thread), path=path)


async def _started(
    command: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    message_bytes_max: int,
) -> ChildTransport:
    """Start the app-server itself, not the wrapper that npm puts before it."""
    env, cwd = inherited() if env is None else env, cwd or os.getcwd()
    program = native_program(command[0], path=env.get("PATH", os.defpath), cwd=cwd)
    order = Command(argv=(program, *command[1:]), cwd=cwd, env=env)
    try:
        return await spawn(order, message_bytes_max=message_bytes_max)
    except CommandNotFound as missing:
        raise CodexNotFound(path=missing.command, reason=missing.reason) from missing


async def _introduce(
    connection: Connection, transport: Transport, gate: Gate | None, limit: float
) -> None:
    """Do the handshake; whatever goes wrong with it has a name of its own."""
    assert gate is not None
    info = ClientInfo(name="holdfast", title="Holdfast", version=__version__)
    params = InitializeParams(info, InitializeCapabilities(experimental_api=True))
    try:
        await connection.request(_INITIALIZE, params, timeout=limit)
        gate.open = True
        await connection.notify("initialized")
    except (ConnectionLost, ConnectionClosed) as end:
        status = end.status if isinstance(end, ConnectionLost) else 0
        raise CodexStartupFailed(reason=end.reason, status=status, stderr=end.stderr) from end
    except RequestTimedOut as late:
        stderr = transport.stderr if isinstance(transport, ChildTransport) else ""
        raise CodexInitTimeout(limit=limit, stderr=stderr) from late
    except ErrorResponse as refused:
        raise CodexInitRejected(reason=refused.error_message) from refused
