"""Reconnecting channel to an exec-server, and the session handshake.

Decision: docs/decisions/0047-which-calls-are-repeated.md
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from copy import copy
from typing import TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

import holdfast.confine.failures  # pyright: ignore[reportUnusedImport]  # see above
import holdfast.world.failures  # noqa: F401  # pyright: ignore[reportUnusedImport]  # see above
from holdfast.exec.client import recovery
from holdfast.exec.client.events import refused
from holdfast.exec.client.recovery import Connected, Dial, Dropped, Failed, Recovering, Resumed
from holdfast.exec.failures import OutcomeUnknown
from holdfast.exec.model import ClientState
from holdfast.exec.protocol import (
    OURS,
    EnvironmentInfo,
    InitializeParams,
    InitializeResult,
    ServerCapabilities,
    agree,
    from_our_side,
)
from holdfast.failures import Failure, Kind
from holdfast.rpc import Connection, ConnectionConfig, HeartbeatPolicy, Transport, heartbeat
from holdfast.rpc.failures import (
    AnswerInvalid,
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    RequestTimedOut,
    VersionRefused,
)

# Imported so that failures of the server about its disk, places and sandboxes can be decoded.

Result = TypeVar("Result")
Dialer = Callable[[], Awaitable[Transport]]
Greet = Callable[[Connection], Awaitable[None]]

CALL_LONGEST = 60.0
_STATUS = "environment/status"


class Channel:
    """Carries calls of one session over whichever connection is current.

    One task serves each connection, and all events reach `run` through one queue: the state has a
    single writer and needs no lock. A connection is used for calls after `greet`, and the next is
    dialled only when the last is closed. `exec.client.recovery` decides.
    """

    def __init__(
        self,
        dial: Dialer,
        greet: Greet,
        *,
        policy: recovery.RecoveryPolicy,
        config: ConnectionConfig,
        heartbeat_policy: HeartbeatPolicy | None,
    ) -> None:
        self._dial, self._greet = dial, greet
        self._policy, self._config, self._heartbeat_policy = policy, config, heartbeat_policy
        self._state: recovery.State = Recovering(0, math.inf, 0)
        self._connection: Connection | None = None
        self._changed = anyio.Event()
        self._tasks: TaskGroup = anyio.create_task_group()

    @property
    def state(self) -> ClientState:
        """The connection state."""
        match self._state:
            case Connected():
                return ClientState.CONNECTED
            case Recovering():
                return ClientState.RECOVERING
            case Failed():
                return ClientState.FAILED

    @property
    def failure(self) -> Failure | None:
        """The failure that ended the channel; None while it may recover."""
        return self._state.failure if isinstance(self._state, Failed) else None

    async def run(self, tasks: TaskGroup) -> None:
        """Keep the channel connected until it fails for good; `tasks` runs its background work."""
        self._tasks = tasks
        report, news = anyio.create_memory_object_stream[recovery.Event](1)
        step = recovery.begin(anyio.current_time(), self._policy)
        try:
            async with report, news, anyio.create_task_group() as attendants:
                while not isinstance(self._enter(step[0]), Failed):
                    for dial in step[1]:
                        attendants.start_soon(self._attend, dial, report)
                    step = recovery.step(self._state, await news.receive(), self._policy)
                attendants.cancel_scope.cancel()
        finally:
            # Also on cancellation: a shielded task would wait for ever.
            self.close()

    def close(self) -> None:
        """Fail for good; idempotent."""
        if self.failure is None:
            self._enter(Failed(ConnectionClosed(reason="closed by this side")))

    def start_soon(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a coroutine in the background while the channel is open."""
        if self.failure is None:
            self._tasks.start_soon(work)

    async def wait_connected(self) -> Connection:
        """Wait for a connection that is ready for calls; raises the failure of the channel."""
        while True:
            if self.failure is not None:
                raise copy(self.failure)
            connection = self._connection
            if self.state is ClientState.CONNECTED and connection and connection.failure is None:
                return connection
            await self._changed.wait()

    async def wait_state(self, state: ClientState) -> None:
        """Wait for a state; a short-lived state may be missed."""
        while self.state is not state:
            await self._changed.wait()

    async def wait_failed(self) -> Failure:
        """Wait until the channel has failed for good; returns the failure."""
        while self.failure is None:
            await self._changed.wait()
        return self.failure

    async def call(
        self,
        method: str,
        params: object,
        result: type[Result],
        *,
        repeats: bool = False,
        timeout: float = CALL_LONGEST,
    ) -> Result:
        """Send a request, waiting while the channel recovers; with `repeats` retry after a lost
        connection.

        Raises `OutcomeUnknown` for other requests in flight when the connection is lost.
        """
        while True:
            connection = await self.wait_connected()
            try:
                return await self.ask(connection, method, params, result, timeout=timeout)
            except (RequestTimedOut, OutcomeUnknown):
                if not repeats:
                    raise

    # A request needs all of them.
    async def ask(
        self,
        connection: Connection,
        method: str,
        params: object,
        result: type[Result],
        *,
        timeout: float,
    ) -> Result:
        """Send a request on this connection only; raises `OutcomeUnknown` if it is lost
        meanwhile.
        """
        try:
            return await connection.request(method, params, timeout=timeout, result=result)
        except Failure as failure:
            if connection.failure is None or failure != connection.failure:
                raise
            raise OutcomeUnknown(method=method) from failure

    def _enter(self, state: recovery.State) -> recovery.State:
        if self.failure is None:
            self._state = state
        self._changed.set()
        self._changed = anyio.Event()
        return self._state

    async def _attend(self, dial: Dial, report: MemoryObjectSendStream[recovery.Event]) -> None:
        """Serve one generation of the connection, from dialling to its end."""
        await anyio.sleep(dial.wait)
        failure: Failure = ConnectionLost(reason="no answer in time")
        with anyio.CancelScope(deadline=dial.deadline) as patience:
            try:
                transport = await self._dialled()
                async with Connection(transport, self._config) as connection:
                    await self._greet(connection)
                    patience.deadline = math.inf
                    self._connection = connection
                    await report.send(Resumed(dial.generation, at=anyio.current_time()))
                    failure = await self._watched(connection)
            except RequestTimedOut:
                # A server that does not answer is as good as none.
                pass
            except Failure as end:
                failure = end
        await report.send(Dropped(dial.generation, failure, at=anyio.current_time()))

    async def _dialled(self) -> Transport:
        """Dial; after the first success a misconfigured address counts as temporary."""
        with anyio.move_on_after(self._policy.answer_longest):
            try:
                return await self._dial()
            except Failure as failure:
                if failure.kind is Kind.MISCONFIGURED and self._connection is not None:
                    raise ConnectionLost(reason=failure.title) from failure
                raise
        raise ConnectionLost(reason="nobody answered in time")

    async def _watched(self, connection: Connection) -> Failure:
        """Wait for the end of a connection, or for a missed heartbeat if there is a policy."""
        if self._heartbeat_policy is not None:
            async with aclosing(
                heartbeat(connection, self._heartbeat_policy, method=_STATUS)
            ) as beats:
                async for beat in beats:
                    if not beat.responsive:
                        return ConnectionLost(reason="it does not answer any more")
        return await connection.wait_ended()


_INITIALIZE = "initialize"


class ClientSession:
    """Session state of a client, set by the first handshake and resumed by all others.

    A session is never replaced by another one: its processes would be lost silently.
    """

    def __init__(self, client_name: str, *, unread_bytes_max: int, label: str = "") -> None:
        self._client_name, self._unread_bytes_max = client_name, unread_bytes_max
        self._label = label
        self.id: str | None = None
        # Of the wire; None with a server of Codex.
        self.version: int | None = None
        # Credit in bytes; None if the server has no flow control.
        self.untaken_bytes_max: int | None = None
        self.environment: EnvironmentInfo | None = None
        self.capabilities = ServerCapabilities()

    async def introduce(self, connection: Connection, *, timeout: float) -> None:
        """Start the session on a new connection, or resume it there."""
        params = InitializeParams(
            self._client_name, self.id, self._unread_bytes_max, OURS, self._label
        )
        try:
            welcome = await connection.request(
                _INITIALIZE, params, timeout=timeout, result=InitializeResult
            )
        except ErrorResponse as error:
            raise refused(error, subject=self.id or "") from error
        except VersionRefused as error:
            raise from_our_side(error) from error
        self.version = agree(welcome.versions)
        if self.id not in {None, welcome.session_id}:
            reason = f"asked for session {self.id}, it gave {welcome.session_id}"
            raise AnswerInvalid(method=_INITIALIZE, reason=reason)
        self.id = welcome.session_id
        self.untaken_bytes_max = welcome.unread_bytes_max
        self.environment = welcome.environment_info or self.environment
        if self.environment is not None:
            self.capabilities = self.environment.capabilities
        await connection.notify("initialized", {})
