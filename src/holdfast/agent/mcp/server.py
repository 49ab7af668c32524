"""Keep an MCP server at work: start it, and again when it dies, but not for ever.

Whatever a server does, whoever uses it gets an answer or an error, in time.
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
"""Returns if a server may be started now; raises what is in the way."""

START_LONGEST: Final = 30.0
CALL_LONGEST: Final = 300.0
_GRACE: Final = 1.0  # between the end of its input and a kill
STARTS_MAX, STARTS_WITHIN = 4, 60.0  # once, and three times again


class McpServer:
    """One server, whoever uses it and however often it dies."""

    def __init__(
        self,
        server: McpServerConfig,
        ground: SandboxConfig,
        tasks: TaskGroup,
        *,
        start_longest: float = START_LONGEST,
        call_longest: float = CALL_LONGEST,
    ) -> None:
        self.server = server
        self._ground, self._tasks = ground, tasks
        self._start_longest, self._call_longest = start_longest, call_longest
        self._starts: list[float] = []
        self._life: _Life | None = None

    async def offered(self, before: Before) -> list[Offered]:
        """The tools that it has; it is started for that, if `before` lets it."""
        from holdfast.agent.mcp.session import offered_by  # only who has servers needs the SDK

        return await self._with(offered_by, before, longest=self._start_longest)

    async def call(
        self, tool: str, arguments: dict[str, object], before: Before
    ) -> tuple[str, bool]:
        """What a tool of it says, and whether it says that it failed."""
        from holdfast.agent.mcp.session import words_of  # only who has servers needs the SDK

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
        """Do something with a session; one that does not answer in time is ended."""
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
        from holdfast.agent.mcp.session import http_streams  # only who has servers needs the SDK

        if self.server.url:
            return http_streams(self.server.url, self.server.headers)
        return self._process()

    @asynccontextmanager
    async def _process(self) -> AsyncGenerator[TransportStreams]:
        """The streams of a process of its own; all that it started ends with them."""
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
    """A server from its start to its end."""

    def __init__(
        self, streams: Callable[[], AbstractAsyncContextManager[TransportStreams]]
    ) -> None:
        self._streams = streams
        self.begun = anyio.Event()  # it can be used, or never will be
        self.session: ClientSession | None = None
        self.failure: Failure | None = None
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def is_ending(self) -> bool:
        return self._ended.is_set()

    def end(self) -> None:
        """End it, also while it is being introduced."""
        self._ended.set()
        if self.session is None:
            self._scope.cancel()

    def _hear_of_end(self, error: Exception) -> None:
        if isinstance(error, Failure):
            self.failure = error
        self.end()

    async def run(self) -> None:
        """Hold the connection; nothing that goes wrong in here reaches anybody else."""
        from holdfast.agent.mcp.session import session_over  # only who has servers needs the SDK

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


def program_of(server: McpServerConfig, ground: SandboxConfig) -> str | None:
    """The file of a server's command, as its variables find it."""
    path = server.env.get("PATH", ground.environment.get("PATH"))
    return shutil.which(server.command, path=path)


def _words(failure: Failure) -> str:
    """Why it failed, in words; of an error that is not ours, its own."""
    cause = failure.__cause__
    return (str(cause) if cause is not None else failure.user_message).strip().rstrip(".")[:500]
