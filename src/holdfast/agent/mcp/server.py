"""Supervision of an MCP server: start it, restart it when it dies, with a limit.

Every use returns a result or raises a failure within a timeout, whatever the server does.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from holdfast.agent.failures import McpUnavailable
from holdfast.agent.mcp.config import McpServerConfig
from holdfast.agent.sandbox import SandboxConfig, SandboxLevel
from holdfast.failures import Failure, boundary
from holdfast.world import sweep

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams

    from holdfast.agent.mcp.session import Offered

Result = TypeVar("Result")
Before = Callable[[], Awaitable[None]]
"""Returns if a server may be started now; raises otherwise."""

START_LONGEST: Final = 30.0
CALL_LONGEST: Final = 300.0
_GRACE: Final = 1.0  # seconds between closing stdin and a kill
STARTS_MAX, STARTS_WITHIN = 4, 60.0  # the first start and three restarts


class McpServer:
    """A server, shared by all tools, across restarts."""

    def __init__(
        self,
        server: McpServerConfig,
        sandbox: SandboxConfig,
        tasks: TaskGroup,
        *,
        start_longest: float = START_LONGEST,
        call_longest: float = CALL_LONGEST,
    ) -> None:
        self.server = server
        self._ground, self._tasks = sandbox, tasks
        self._start_longest, self._call_longest = start_longest, call_longest
        self._starts: list[float] = []
        self._life: _Life | None = None

    async def offered(self, before: Before) -> list[Offered]:
        """List its tools; starts the server if `before` permits it."""
        # Imported on first use: the SDK is large, and most sessions have no servers.
        from holdfast.agent.mcp.session import offered_by

        return await self._with(offered_by, before, longest=self._start_longest)

    async def call(
        self, tool: str, arguments: dict[str, object], before: Before
    ) -> tuple[str, bool]:
        """Call a tool; return its text, and whether it is an error."""
        from holdfast.agent.mcp.session import words_of  # as above

        async def called(session: ClientSession) -> tuple[str, bool]:
            result = await session.call_tool(tool, arguments)
            return words_of(result), bool(result.is_error)

        return await self._with(called, before, longest=self._call_longest)

    async def _with(
        self,
        work: Callable[[ClientSession], Awaitable[Result]],
        before: Before,
        *,
        longest: float,
    ) -> Result:
        """Run a function with a session; a server that does not respond in time is ended."""
        life = await self._living(before)
        assert life.session is not None, "it lives"
        try:
            with boundary("agent.mcp"), anyio.fail_after(longest):
                return await work(life.session)
        except Failure as failure:
            late = isinstance(failure.__cause__, TimeoutError)
            if late or life.is_ending:
                life.end()
            reason = f"it did not answer within {longest:g} seconds" if late else _words(failure)
            raise McpUnavailable(server=self.server.name, reason=reason) from failure

    async def _living(self, before: Before) -> _Life:
        if self._life is None or self._life.is_ending:
            await before()
            self._count_start()
            self._life = _Life(self._streams)
            self._tasks.start_soon(self._life.run)
        life = self._life
        with anyio.move_on_after(self._start_longest):
            await life.begun.wait()
        if life.session is None:
            reason = "it did not start in time" if life.failure is None else _words(life.failure)
            life.end()
            raise McpUnavailable(server=self.server.name, reason=reason)
        return life

    def _count_start(self) -> None:
        now = anyio.current_time()
        self._starts = [each for each in self._starts if now - each < STARTS_WITHIN]
        if len(self._starts) >= STARTS_MAX:
            times = f"it was started {STARTS_MAX} times within {STARTS_WITHIN:g} seconds"
            raise McpUnavailable(server=self.server.name, reason=times)
        self._starts.append(now)

    def _streams(self) -> AbstractAsyncContextManager[TransportStreams]:
        from holdfast.agent.mcp.session import http_streams  # as above

        if self.server.url:
            return http_streams(self.server.url, self.server.headers)
        return self._process()

    @asynccontextmanager
    async def _process(self) -> AsyncGenerator[TransportStreams]:
        """Start the server's process; leaving the context ends it with its descendants."""
        from holdfast.agent.mcp.session import process_streams  # as above

        mark = self._ground.new_mark()
        found = program_of(self.server, self._ground)
        argv = (found or self.server.command, *self.server.args)
        command = self._ground.command(argv, SandboxLevel.OPEN, mark=mark, has_stdin=True)
        command = replace(command, env={**command.env, **self.server.env})
        process = await self._ground.processes.start(command)
        try:
            async with process_streams(process, grace=_GRACE) as streams:
                yield streams
        finally:
            sweep(mark)


class _Life:
    """One run of a server, from start to exit."""

    def __init__(
        self, streams: Callable[[], AbstractAsyncContextManager[TransportStreams]]
    ) -> None:
        self._streams = streams
        self.begun = anyio.Event()  # the session is ready, or never will be
        self.session: ClientSession | None = None
        self.failure: Failure | None = None
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def is_ending(self) -> bool:
        return self._ended.is_set()

    def end(self) -> None:
        """End the server, also during initialization."""
        self._ended.set()
        if self.session is None:
            self._scope.cancel()

    def _hear_of_end(self, error: Exception) -> None:
        if isinstance(error, Failure):
            self.failure = error
        self.end()

    async def run(self) -> None:
        """Hold the connection; errors do not propagate to other tasks."""
        from holdfast.agent.mcp.session import session_over  # as above

        try:
            with boundary("agent.mcp"), self._scope:
                async with (
                    self._streams() as streams,
                    session_over(streams, self._hear_of_end) as session,
                ):
                    self.session = session
                    self.begun.set()
                    await self._ended.wait()
        except Failure as failure:
            self.failure = failure
        finally:
            self.session = None
            self.begun.set()
            self._ended.set()


def program_of(server: McpServerConfig, sandbox: SandboxConfig) -> str | None:
    """Return the path of a server's program, by its PATH."""
    path = server.env.get("PATH", sandbox.environment.get("PATH"))
    return shutil.which(server.command, path=path)


def _words(failure: Failure) -> str:
    """Return the reason of a failure; of a foreign exception, its own text."""
    cause = failure.__cause__
    return (str(cause) if cause is not None else failure.user_message).strip().rstrip(".")[:500]
