"""RPC transport to a process of an exec-server: one message per line, reconnects are invisible."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from copy import copy

import anyio

from holdfast.exec.client.process import Process
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.protocol import OutputStream
from holdfast.failures import Failure
from holdfast.rpc import (
    MESSAGE_BYTES_MAX,
    EndContext,
    EndEvidence,
    LineDecoder,
    TailBuffer,
    child_failure,
    excerpt,
    join,
)
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost

GRACE = 5.0


class ProcessTransport:
    """Connection to a process, which lives exactly as long as the connection.

    What a slow reader has no room for stays with the server, and the process blocks once that is
    full too; a server without flow control drops it, which ends the process.
    """

    def __init__(
        self,
        process: Process,
        *,
        grace: float = GRACE,
        message_bytes_max: int = MESSAGE_BYTES_MAX,
    ) -> None:
        self.process = process
        self._grace = grace
        self._lines = LineDecoder(message_bytes_max=message_bytes_max)
        self._stderr = TailBuffer()
        self._status: int | None = None
        self._failure: Failure | None = None
        self._waiting: set[anyio.CancelScope] = set()
        self._closed: anyio.Event | None = None

    @property
    def stderr(self) -> str:
        """The end of what the process and its descendants wrote to stderr."""
        return self._stderr.text()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raises the failure that ended it."""
        while self._failure is None:
            events: list[Event] = []
            linger = math.inf if self._status is None else self._grace
            with self._until_closed(), anyio.move_on_after(linger) as lingering:
                try:
                    events = await self.process.receive()
                except Failure as failure:
                    self._failure = self._failure or failure
            # Its descendants hold its output, and may for ever.
            if lingering.cancelled_caught:
                self._end(self._verdict(b""))
            if self._failure is None and (messages := self._take(events)):
                return messages
        raise copy(self._failure)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the queue is full."""
        while not self.offer(messages):
            with self._until_closed(), self._complaining():
                await self.process.stdin.wait_room()

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the queue has room; returns whether it did."""
        if self._failure is not None:
            raise copy(self._failure)
        if not self.process.stdin.has_room:
            return False
        if messages:
            with self._complaining():
                self.process.stdin.put(join(messages))
        return True

    async def aclose(self) -> None:
        """End the process in bounded time, even if the caller is cancelled; idempotent."""
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = anyio.Event()
        self._end(ConnectionClosed(reason="closed by us"))
        with anyio.CancelScope(shield=True):
            try:
                if self.process.status is None:
                    await self._end_process()
            finally:
                self._closed.set()

    async def _end_process(self) -> None:
        """Close stdin if the server can, else interrupt; then kill."""
        with suppress(Failure), anyio.move_on_after(self._grace):
            await self.process.stdin.flushed()
            if self.process.can_close_stdin:
                await self.process.close_stdin()
            else:
                await self.process.signal()
            await self.process.wait()
        with suppress(Failure), anyio.move_on_after(self._grace):
            # Also what its descendants left of its group.
            await self.process.terminate()
            await self.process.wait()

    def _take(self, events: list[Event]) -> list[bytes]:
        messages: list[bytes] = []
        for event in events:
            match event:
                case Output(stream=OutputStream.STDERR, data=data):
                    self._stderr.feed(data)
                case Output(data=data):
                    messages += self._lines.feed(data)
                case Exited(status=status):
                    self._status = status
                case Closed():
                    rest, partial = self._lines.finish()
                    messages += rest
                    self._end(self._verdict(partial))
        if self._lines.failure is not None:
            self._end(self._lines.failure)
        return messages

    def _verdict(self, partial: bytes) -> Failure:
        evidence = EndEvidence(at_end=True, status=self._status, waited=True)
        failure = child_failure(evidence, EndContext(stderr=self.stderr, partial=excerpt(partial)))
        assert failure is not None, "it has waited"
        return failure

    def _end(self, failure: Failure) -> None:
        self._failure = self._failure or failure
        for scope in self._waiting:
            scope.cancel()

    @contextmanager
    def _until_closed(self) -> Generator[None]:
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                yield
            finally:
                self._waiting.discard(scope)

    @contextmanager
    def _complaining(self) -> Generator[None]:
        """Convert failures of a write: the reader gets the cause."""
        try:
            yield
        except Failure as failure:
            raise ConnectionLost(reason=failure.title) from failure
