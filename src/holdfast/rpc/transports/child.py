"""Speak with a child process: a message a line over its standard input and output."""

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
    """A connection with a process that lives as long as the connection does."""

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
        """The last that the child and its descendants wrote to their standard error."""
        return self._child.stderr()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raise what ended it."""
        return await self._stream.reader.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over, in order, waiting while the child is slow to read."""
        await self._stream.writer.send(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        return self._stream.writer.offer(messages)

    async def aclose(self) -> None:
        """End the child and all its descendants, first kindly, in bounded time whoever cancels.

        It is asked three times, with one grace period each: by the end of its input, by SIGTERM
        and by SIGKILL. Descendants that outlive it are killed, whatever session they are in.
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
        """End the child and all its descendants by SIGKILL, without the grace of `aclose`."""
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
    """Start a command in a session of its own and connect to it; it does not outlive us.

    On Linux it is killed when the thread that runs this loop ends, even by SIGKILL. Elsewhere, or
    where `setpriv` is missing, the end of its input is all that tells it.
    """
    mark = secrets.token_hex(16)
    with started_process(command, mark) as (process, pipes):
        child = ChildProcess(process, pipes, message_bytes_max=message_bytes_max)
    return ChildTransport(child, ProcessTree.of(process.pid, mark), grace=grace)
