"""A connection with a Codex app-server."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeGuard, Unpack

import msgspec
from msgspec import Raw

from holdfast import __version__
from holdfast.codex.approvals import ApprovalHooks
from holdfast.codex.calls import RequestSender
from holdfast.codex.events import read_event
from holdfast.codex.executable import native_program
from holdfast.codex.failures import (
    CodexIncompatible,
    CodexInitRejected,
    CodexInitTimeout,
    CodexNotFound,
    CodexStartupFailed,
)
from holdfast.codex.model import ConnectionState, Event, Hook, ServerHealth
from holdfast.codex.options import ThreadOptions, thread_params
from holdfast.codex.subscriptions import Router
from holdfast.codex.thread import Thread, settle_doubt
from holdfast.codex.versions import UNKNOWN, version_of
from holdfast.codex.wire.generated import (
    ClientInfo,
    IdleThreadStatus,
    InitializeCapabilities,
    InitializeParams,
    InitializeResponse,
    Model,
    ModelListParams,
    ModelListResponse,
    ThreadArchiveParams,
    ThreadArchiveResponse,
    ThreadForkParams,
    ThreadForkResponse,
    ThreadListParams,
    ThreadListResponse,
    ThreadResumeInitialTurnsPageParams,
    ThreadResumeParams,
    ThreadResumeResponse,
    ThreadStartParams,
    ThreadStartResponse,
    ThreadUnarchiveParams,
    ThreadUnarchiveResponse,
    TurnStartResponse,
)
from holdfast.codex.wire.generated import Thread as ThreadRecord
from holdfast.codex.wire.reading import read_answer, read_anything
from holdfast.failures import Failure
from holdfast.rpc import (
    ChildCommand,
    ChildTransport,
    Connection,
    ConnectionConfig,
    HandshakeGate,
    Overflow,
    PeerLimits,
    Transport,
    spawn,
)
from holdfast.rpc.failures import (
    AnswerInvalid,
    CommandNotFound,
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    RequestTimedOut,
)
from holdfast.rpc.model import Dialect
from holdfast.telemetry import Telemetry
from holdfast.world import RandomSource, SystemClock, SystemRandomSource, background_tasks

# The default environment of a Codex process.


def inherited() -> dict[str, str]:
    """Ours: an embedded SDK has no settings to take one from."""
    return dict(os.environ)


_INITIALIZE = "initialize"
_RESOLVED = "serverRequest/resolved"
_HEALTH_LIMIT = 5.0
_CLOSING = {  # requests after which the server sends no more news of their thread
    "thread/unsubscribe": "this connection unsubscribed from it",
    "thread/archive": "it was archived",
    "thread/delete": "it was deleted",
}
_LAST_TURN = ThreadResumeInitialTurnsPageParams("notLoaded", limit=1, sort_direction="desc")


class AppServer:
    """One connection with one app-server: threads, raw requests, news and health.

    It never reconnects: what a server had in memory is gone with it. Connect again and resume.
    """

    def __init__(self, connection: Connection, calls: RequestSender, router: Router) -> None:
        self._connection = connection
        self._calls = calls
        self._router = router

    @classmethod
    @asynccontextmanager
    async def connect(  # noqa: PLR0913  # public API: all by keyword, all with a default
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
        malformed_max: int = 10,
        approval_timeout: float = 30.0,
        telemetry: Telemetry | None = None,
        chance: RandomSource | None = None,
    ) -> AsyncGenerator[AppServer]:
        """Start an app-server, or take a transport to one, and introduce ourselves.

        The server ends with the block. Without a hook every approval is declined. After
        `malformed_max` malformed messages in a row `health` says that the server is unhealthy.
        `chance` decides how long to wait before an overloaded server is asked again.
        """
        telemetry = telemetry or Telemetry([], clock=SystemClock())
        async with background_tasks() as tasks:
            router = Router(telemetry, tasks)
            hooks = ApprovalHooks(
                hook=approvals,
                timeout=approval_timeout,
                waits=lambda thread: router.followed(thread).turns,
                is_open=lambda: router.is_open,
                telemetry=telemetry,
            )
            terms = ConnectionConfig(
                limits=PeerLimits(
                    in_flight_max=max_in_flight,
                    malformed_max=malformed_max,
                    message_bytes_max=message_bytes_max,
                ),
                dialect=Dialect(resolved_method=_RESOLVED),
                service=hooks.service(),
                calls=HandshakeGate(method=_INITIALIZE),
                telemetry=telemetry,
                peer="codex",
            )
            way = transport or await _started(command, cwd, env, message_bytes_max)
            try:
                async with Connection(way, terms) as connection:
                    connection.follow(router)
                    version = await _introduce(connection, way, terms.calls, init_timeout)
                    calls = RequestSender(
                        connection, telemetry, chance or SystemRandomSource(), version
                    )
                    yield cls(connection, calls, router)
            finally:
                await hooks.close()

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        failure = self._connection.failure
        if failure is None:
            return ConnectionState.CONNECTED
        return (
            ConnectionState.CLOSED
            if isinstance(failure, ConnectionClosed)
            else ConnectionState.CRASHED
        )

    @property
    def failure(self) -> Failure | None:
        """What ended the connection; None while it stands."""
        return self._connection.failure

    @property
    def is_intelligible(self) -> bool:
        """Whether what the server says makes sense: `malformed_max` bad messages do not."""
        return self._connection.failure is not None or self._connection.healthy

    @property
    def version(self) -> str:
        """The version of the server, as it names itself."""
        return self._calls.version

    async def start_thread(
        self, *, more: ThreadStartParams | None = None, **options: Unpack[ThreadOptions]
    ) -> Thread:
        """Begin a conversation; it can be resumed once its first turn has begun.

        Options that are given replace those of `more`, which holds any other parameter of
        `thread/start`.
        """
        params = thread_params(more or ThreadStartParams(), options)
        started = await self._calls.typed("thread/start", params, ThreadStartResponse)
        return self._thread(started.thread, started.model)

    async def resume_thread(
        self,
        thread: str,
        *,
        more: ThreadResumeParams | None = None,
        **options: Unpack[ThreadOptions],
    ) -> Thread:
        """Continue a conversation, also one that another connection began, where it was or here.

        History and id survive the loss of a connection. The running turn does only where the
        server outlives the connection; then `active_turn` is set and `follow` yields the rest.
        """
        self._router.followed(thread)  # its news comes before the answer
        base = msgspec.structs.replace(
            more or ThreadResumeParams(thread),
            thread_id=thread,
            exclude_turns=True,
            initial_turns_page=_LAST_TURN,
        )
        params = thread_params(base, options)
        resumed = await self._calls.typed("thread/resume", params, ThreadResumeResponse)
        self._open(thread, resumed)
        return self._thread(resumed.thread, resumed.model)

    async def fork_thread(
        self, thread: str, *, more: ThreadForkParams | None = None, **options: Unpack[ThreadOptions]
    ) -> Thread:
        """Begin another conversation that knows all that was said in one so far, there or here.

        It is kept at once, and can be resumed as any other; the first one stays as it is.
        """
        base = msgspec.structs.replace(
            more or ThreadForkParams(thread), thread_id=thread, exclude_turns=True
        )
        params = thread_params(base, options)
        forked = await self._calls.typed("thread/fork", params, ThreadForkResponse)
        return self._thread(forked.thread, forked.model)

    async def list_threads(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        more: ThreadListParams | None = None,
    ) -> ThreadListResponse:
        """List stored threads, the newest first, a page at a time.

        `next_cursor` of a page is the `cursor` of the next one; None after the last. `more` holds
        any other parameter of `thread/list`: directory, search term, archived ones.
        """
        given = {"limit": limit, "cursor": cursor}
        params = msgspec.structs.replace(
            more or ThreadListParams(), **{k: v for k, v in given.items() if v is not None}
        )
        return await self._calls.typed("thread/list", params, ThreadListResponse)

    async def archive_thread(self, thread: str) -> None:
        """Put a thread away, loaded or not; lists show it only among archived ones."""
        params = ThreadArchiveParams(thread)
        await self._calls.typed("thread/archive", params, ThreadArchiveResponse)
        self._router.followed(thread).close(_CLOSING["thread/archive"])

    async def unarchive_thread(self, thread: str) -> None:
        """Take an archived thread back; it can be resumed again."""
        params = ThreadUnarchiveParams(thread)
        await self._calls.typed("thread/unarchive", params, ThreadUnarchiveResponse)

    async def models(self, *, include_hidden: bool = False) -> tuple[Model, ...]:
        """List the models that Codex offers."""
        found: list[Model] = []
        cursor: str | None = None
        while True:
            params = ModelListParams(cursor=cursor, include_hidden=include_hidden or None)
            page = await self._calls.typed("model/list", params, ModelListResponse)
            found += page.data
            if not page.data or page.next_cursor in (None, cursor):
                return tuple(found)
            cursor = page.next_cursor

    async def request(
        self, method: str, params: object = None, *, timeout: float | None = None
    ) -> object:
        """Send any request and return the answer as plain JSON values.

        Without a timeout each method has a limit of its own. Only a request that the server was
        too busy to look at is made again. `turn/start` and `review/start` are refused while a turn
        runs, and `follow` of their thread yields the events of what they started; not so a review
        that is delivered to a thread of its own.
        """
        thread = _thread_named(params)
        if thread is not None and _is_start(method, params):
            answer = await self._start_turn(method, thread, params, timeout)
        else:
            answer = await self._calls.raw(method, params, timeout=timeout)
        if thread is not None and method in _CLOSING:
            self._router.followed(thread).close(_CLOSING[method])
        elif thread is not None and method == "thread/resume":
            try:
                self._open(thread, self._calls.read(method, ThreadResumeResponse, answer))
            except CodexIncompatible:  # the caller of a raw request may know how to read it
                self._router.followed(thread).open(None, is_in_doubt=True)
        return read_anything(method, answer)

    def _open(self, thread: str, resumed: ThreadResumeResponse) -> None:
        """Follow a thread from its answer to `thread/resume` on, and the turn that runs there."""
        page = resumed.initial_turns_page
        turns = page.data if page is not None else resumed.thread.turns[-1:]
        running = next((turn.id for turn in turns if turn.status == "inProgress"), None)
        is_idle = isinstance(resumed.thread.status, IdleThreadStatus)
        self._router.followed(thread).open(running, is_in_doubt=not is_idle)

    async def _start_turn(
        self, method: str, thread: str, params: object, timeout: float | None
    ) -> Raw:
        followed = self._router.followed(thread)

        async def request() -> tuple[str, Raw]:
            await settle_doubt(self._calls, followed)
            followed.hold()
            answer = await self._calls.raw(method, params, timeout=timeout)
            return self._calls.read(method, TurnStartResponse, answer).turn.id, answer

        return await followed.start(request)

    async def notifications(
        self, *, overflow: Overflow = Overflow.END, items_max: int = 100_000
    ) -> AsyncGenerator[Event]:
        """Yield every notification from now on, unknown ones included, until the connection ends.

        A reader that is too slow ends with a failure, or with `Overflow.DROP_OLDEST` misses what
        it was too slow for.
        """
        with self._connection.subscribe(overflow=overflow, items_max=items_max) as news:
            async for notification in news:
                yield read_event(notification)

    async def health(self) -> ServerHealth:
        """Say whether the server answers within five seconds; never raises."""
        if not self.is_intelligible:
            return ServerHealth(False, "too much of what it sends makes no sense")
        try:
            await self._connection.request(  # once: a server too busy to look is not healthy
                "thread/list", {"limit": 1, "useStateDbOnly": True}, timeout=_HEALTH_LIMIT
            )
        except Failure as failure:
            return ServerHealth(False, failure.user_message, failure)
        return ServerHealth(True)

    def _thread(self, thread: ThreadRecord, model: str) -> Thread:
        followed = self._router.followed(thread.id)
        return Thread(thread.id, self._calls, followed, path=thread.path, model=model)


def _thread_named(params: object) -> str | None:
    """The thread that the parameters of a raw request are about, if they are about one."""
    named: object = getattr(params, "thread_id", None)
    if _is_mapping(params):
        named = params.get("threadId")
    return named if isinstance(named, str) else None


def _is_start(method: str, params: object) -> bool:
    """Whether a raw request starts a turn in the thread that it names."""
    if method != "review/start":
        return method == "turn/start"
    return not (_is_mapping(params) and params.get("delivery") == "detached")


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


async def _started(
    command: Sequence[str],
    cwd: str | None,
    env: Mapping[str, str] | None,
    message_bytes_max: int,
) -> ChildTransport:
    """Start the app-server itself, not the wrapper that npm puts before it."""
    if isinstance(command, str) or not command or not command[0]:
        named = command if isinstance(command, str) else ""
        raise CodexNotFound(path=repr(named), reason="the command must be a list of words")
    env, cwd = inherited() if env is None else env, cwd or os.getcwd()
    program = native_program(command[0], path=env.get("PATH", os.defpath), cwd=cwd)
    order = ChildCommand(argv=(program, *command[1:]), cwd=cwd, env=env)
    try:
        return await spawn(order, message_bytes_max=message_bytes_max)
    except CommandNotFound as missing:
        raise CodexNotFound(path=missing.command, reason=missing.reason) from missing


async def _introduce(
    connection: Connection, transport: Transport, gate: HandshakeGate | None, limit: float
) -> str:
    """Do the handshake and return the server's version; kill a server that fails it."""
    assert gate is not None
    info = ClientInfo(name="holdfast", title="Holdfast", version=__version__)
    params = InitializeParams(info, InitializeCapabilities(experimental_api=True))
    try:
        answer = await connection.request(_INITIALIZE, params, timeout=limit)
        gate.open = True
        await connection.notify("initialized")
    except Failure as failure:
        stderr = await _killed(transport)  # however it failed: a kind end may take 10 seconds
        match failure:
            case ConnectionLost(reason=reason) | ConnectionClosed(reason=reason):
                status = failure.status if isinstance(failure, ConnectionLost) else 0
                ended = CodexStartupFailed(reason=reason, status=status, stderr=failure.stderr)
                raise ended from failure
            case RequestTimedOut():
                raise CodexInitTimeout(limit=limit, stderr=stderr) from failure
            case ErrorResponse(error_message=message):
                raise CodexInitRejected(reason=message) from failure
            case _:
                raise
    return _version_in(answer)


async def _killed(transport: Transport) -> str:
    """Kill the server, if it is a child of ours, and return its last words."""
    if not isinstance(transport, ChildTransport):
        return ""
    await transport.kill()
    return transport.stderr


def _version_in(answer: Raw) -> str:
    try:
        read = read_answer(_INITIALIZE, InitializeResponse, answer)
    except AnswerInvalid:
        return UNKNOWN
    return version_of(read.user_agent)
