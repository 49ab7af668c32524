"""Speak over our own standard input and output: a message a line, one conversation."""

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
    """A connection with whoever started us, over two descriptors that it makes its own.

    Who ends our input may still wait for answers: it ends only when those are given, or a moment
    later.
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
        """Wait for the messages that one read yields; raise what ended it."""
        messages = await self._stream.reader.receive()
        found = map(parse_message, messages)
        self._asked.update(each.id for each in found if isinstance(each, Request))
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        await self._stream.writer.send(messages)
        self._answered(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        is_done = self._stream.writer.offer(messages)
        if is_done:
            self._answered(messages)
        return is_done

    async def aclose(self) -> None:
        """Say what is still unsaid, but not for long, and let go of both descriptors."""
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
