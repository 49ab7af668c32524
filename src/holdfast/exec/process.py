"""A process on a server, held in a way that a lost connection does not take away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

from holdfast.exec.core.answers import read_page, refused
from holdfast.exec.failures import CapabilityMissing
from holdfast.exec.feed import Feed
from holdfast.exec.line import Line
from holdfast.exec.model import Command, Event, Page
from holdfast.exec.session import Session
from holdfast.exec.stdin import Stdin
from holdfast.exec.wire import (
    ProcessParams,
    ReadParams,
    ResizeParams,
    SignalParams,
    TerminateResult,
    Wire,
)
from holdfast.rpc.failures import ErrorResponse

Result = TypeVar("Result")


class Process:
    """One process, from its start to its close, whichever connection carries it.

    What it says has one reader. What changes it is asked once: after a cut in the middle of that,
    its outcome is unknown, and said to be.
    """

    def __init__(
        self, command: Command, feed: Feed, line: Line, session: Session, *, writer: str = ""
    ) -> None:
        """`writer` tells us apart from all others who write to the same process."""
        self.command = command
        self.was_continued = False  # its start was found to have happened after a cut
        self.sandbox_strength = ""  # `full` or `reduced` of one that is shut in, where that is said
        self.sandbox_lacks: tuple[str, ...] = ()  # what that does not do that it should
        self.stdin = Stdin(feed.process, line, mark=f"{session.id}-{feed.process}{writer}")
        self._feed, self._line, self._session = feed, line, session

    @property
    def id(self) -> str:
        """Its id in the session."""
        return self._feed.process

    @property
    def status(self) -> int | None:
        """Its exit status; None while none is known."""
        return self._feed.status

    @property
    def can_close_stdin(self) -> bool:
        """Whether the server can show it the end of its input."""
        return self._session.capabilities.close_stdin

    @property
    def can_be_killed(self) -> bool:
        """Whether the server can send it other signals than an interrupt."""
        return self._session.capabilities.kill

    async def receive(self) -> list[Event]:
        """Wait for what happened since the last call, in order; nothing after the close."""
        return await self._feed.receive()

    async def events(self) -> AsyncIterator[Event]:
        """Yield all that happens, in order and each exactly once, to the close."""
        while batch := await self._feed.receive():
            for event in batch:
                yield event

    async def recall(self, *, after: int, bytes_max: int) -> Page:
        """Read again what it wrote after an event, as far as the server still keeps that."""
        params = ReadParams(self.id, after_seq=after, max_bytes=bytes_max, wait_ms=0)
        try:
            return read_page(params, await self._feed.ask(params))
        except ErrorResponse as error:
            raise refused(error, subject=self.id) from error

    async def wait(self) -> int:
        """Wait until it has ended; return its status.

        Raises `ProcessLost` where that is not known, because its keeper was killed. Its output need
        not be read meanwhile, as long as the server has room for that (64 MiB); then the process
        waits for its reader. Output that no reader has begun to read by the end counts as taken: it
        can be read for as long as the server keeps closed processes (30 s by default).
        """
        return await self._feed.wait_status()

    async def write(self, data: bytes) -> None:
        """Write to its input: once, whole and after all that was written before."""
        await self.stdin.write(data)

    async def close_stdin(self) -> None:
        """Let it see the end of its input, where the server can do that."""
        self._demand("closeStdin", self.can_close_stdin)
        await self.stdin.close()

    async def resize(self, *, rows: int, cols: int) -> None:
        """Give its terminal another size, where the server can do that."""
        self._demand("resize", self._session.capabilities.resize)
        await self._call("process/resize", ResizeParams(self.id, rows, cols), dict[str, object])

    async def signal(self, name: str = "interrupt") -> None:
        """Signal its group; any other than an interrupt only where the server can do that."""
        if name != "interrupt":
            self._demand("kill", self.can_be_killed)
        await self._call("process/signal", SignalParams(self.id, name), dict[str, object])

    async def terminate(self) -> bool:
        """Kill it and all that it has started; say whether it was still running itself."""
        params = ProcessParams(self.id)
        return (await self._call("process/terminate", params, TerminateResult)).running

    async def forget(self) -> None:
        """Have the server remove its record and its output, and free its id.

        Raises `RequestUnfit` while it runs. A server that cannot forget on request does so by
        itself, when it no longer keeps closed processes.
        """
        if self._session.capabilities.forget:
            params = ProcessParams(self.id)
            await self._call("process/forget", params, dict[str, object], repeats=True)
            self._feed.forget()

    def _demand(self, capability: str, is_there: bool) -> None:
        if not is_there:
            raise CapabilityMissing(capability=capability)

    async def _call(
        self, method: str, params: Wire, result: type[Result], *, repeats: bool = False
    ) -> Result:
        try:
            return await self._line.call(method, params, result, repeats=repeats)
        except ErrorResponse as error:
            raise refused(error, subject=self.id) from error
