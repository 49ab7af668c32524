"""Transport over our own stdin and stdout: one message per line, one connection."""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.framing import MESSAGE_BYTES_MAX, EndContext, EndEvidence, socket_failure
from holdfast.rpc.model import Answer, ErrorReply, Request, RequestId
from holdfast.rpc.peer import parse_message
from holdfast.rpc.transports.stream_loop import LineStream

_FLUSH_LONGEST = 1.0


class StdioTransport:
    """Connection to the parent process over two descriptors, which are duplicated.

    EOF on stdin does not end it at once: the parent may still wait for replies. It ends when all
    requests have a reply, or when the wait times out.
    """

    def __init__(
        self, *, read_fd: int = 0, write_fd: int = 1, message_bytes_max: int = MESSAGE_BYTES_MAX
    ) -> None:
        self._stream = LineStream(
            read_fd=os.dup(read_fd),
            write_fd=os.dup(write_fd),
            message_bytes_max=message_bytes_max,
            judge=self._judge,
        )
        self._asked: set[RequestId] = set()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raises the failure that ended it."""
        messages = await self._stream.reader.receive()
        found = map(parse_message, messages)
        self._asked.update(each.id for each in found if isinstance(each, Request))
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the other side applies backpressure."""
        await self._stream.writer.send(messages)
        self._answered(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the buffer has room; returns whether it did."""
        is_done = self._stream.writer.offer(messages)
        if is_done:
            self._answered(messages)
        return is_done

    async def aclose(self) -> None:
        """Flush the buffer for at most a second, then close both descriptors."""
        with anyio.CancelScope(shield=True):
            self._stream.retire(ConnectionClosed(reason="closed by us"))
            with anyio.move_on_after(_FLUSH_LONGEST):
                await self._stream.writer.flushed()
            self._stream.close()

    def _answered(self, messages: Sequence[bytes]) -> None:
        if self._asked:
            found = map(parse_message, messages)
            self._asked.difference_update(
                each.id for each in found if isinstance(each, Answer | ErrorReply)
            )

    def _judge(self, evidence: EndEvidence, remains: EndContext) -> Failure | None:
        is_owed = self._stream.reader.has_unread or self._asked
        if is_owed and evidence.at_end and not evidence.error and not evidence.waited:
            return None
        return socket_failure(evidence, remains)
