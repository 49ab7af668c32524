"""Speak over our own standard input and output: a message a line, one conversation."""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio

from holdfast.rpc.core.ending import of_socket
from holdfast.rpc.core.framing import MESSAGE_BYTES_MAX
from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.stream_loop import LineStream

_FLUSH_LONGEST = 1.0


class StdioTransport:
    """A connection with whoever started us, over two descriptors that it makes its own."""

    def __init__(
        self, *, read_fd: int = 0, write_fd: int = 1, message_bytes_max: int = MESSAGE_BYTES_MAX
    ) -> None:
        self._stream = LineStream(
            read_fd=os.dup(read_fd),
            write_fd=os.dup(write_fd),
            message_bytes_max=message_bytes_max,
            judge=of_socket,
        )

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raise what ended it."""
        return await self._stream.reader.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        await self._stream.writer.send(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        return self._stream.writer.offer(messages)

    async def aclose(self) -> None:
        """Say what is still unsaid, but not for long, and let go of both descriptors."""
        with anyio.CancelScope(shield=True):
            self._stream.retire(ConnectionClosed(reason="closed by us"))
            with anyio.move_on_after(_FLUSH_LONGEST):
                await self._stream.writer.flushed()
            self._stream.close()
