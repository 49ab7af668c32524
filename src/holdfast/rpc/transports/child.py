"""Transport to a child process: one message per line over its stdin and stdout."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import anyio

from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.framing import MESSAGE_BYTES_MAX
from holdfast.rpc.transports.child_loop import ChildProcess
from holdfast.rpc.transports.launch import ChildCommand, ProcessTree, started_process

GRACE = 5.0


class ChildTransport:
    """Connection to a child process, which lives exactly as long as the connection."""

    def __init__(self, child: ChildProcess, tree: ProcessTree, *, grace: float) -> None:
        self._child, self._tree, self._grace = child, tree, grace
        self._stream = child.stream
        self._closed: anyio.Event | None = None
        self._kills_at_once = False

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._tree.root

    @property
    def stderr(self) -> str:
        """The end of what the child and its descendants wrote to stderr."""
        return self._child.stderr()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raises the failure that ended it."""
        return await self._stream.reader.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the child applies backpressure."""
        await self._stream.writer.send(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the buffer has room; returns whether it did."""
        return self._stream.writer.offer(messages)

    async def aclose(self) -> None:
        """End the child and all its descendants in bounded time, even if the caller is cancelled.

        Three steps with a grace period each: EOF on its stdin, SIGTERM, SIGKILL. Descendants that
        outlive it are killed, whatever session they are in.
        """
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = anyio.Event()
        with anyio.CancelScope(shield=True):
            try:
                self._stream.retire(ConnectionClosed(reason="closed by us"))
                await self._end_gracefully()
                await self._tree.kill(patience=self._grace)
                with anyio.move_on_after(self._grace):
                    await self._child.exited.wait()
            finally:
                self._child.release()
                self._closed.set()

    async def kill(self) -> None:
        """End the child and all its descendants with SIGKILL, without the grace periods of
        `aclose`.
        """
        self._kills_at_once = True
        await self.aclose()

    async def _end_gracefully(self) -> None:
        if self._kills_at_once:
            self._stream.writer.close()
            return
        with anyio.move_on_after(self._grace):
            await self._stream.writer.flushed()
            self._stream.writer.close()
            await self._child.exited.wait()
            return
        self._stream.writer.close()
        self._tree.terminate()
        with anyio.move_on_after(self._grace):
            await self._child.exited.wait()


async def spawn(
    command: ChildCommand, *, grace: float = GRACE, message_bytes_max: int = MESSAGE_BYTES_MAX
) -> ChildTransport:
    """Start a command in its own session and connect to it; the child does not outlive us.

    On Linux the kernel kills it when the thread of this event loop ends, even by SIGKILL.
    Elsewhere, or without `setpriv`, EOF on its stdin is the only signal that it gets.
    """
    mark = secrets.token_hex(16)
    with started_process(command, mark) as (process, pipes):
        child = ChildProcess(process, pipes, message_bytes_max=message_bytes_max)
    return ChildTransport(child, ProcessTree.of(process.pid, mark), grace=grace)
