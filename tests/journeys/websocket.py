"""Just enough of a WebSocket client to reach an app-server that outlives its connections."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost

_UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_HEAD_MAX = 2**16
_FINAL, _TEXT, _MASKED = 0x80, 0x1, 0x80


class WebSocket:
    """A transport of whole messages, one text frame each; it can be cut like a cable."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._reader = BufferedByteReceiveStream(stream)
        self._sending = anyio.Lock()
        self._end: Failure | None = None

    @classmethod
    async def dial(cls, path: Path) -> WebSocket:
        """Connect over a Unix socket."""
        socket = cls(await anyio.connect_unix(path))
        await socket._stream.send(_UPGRADE)
        head = await socket._reader.receive_until(b"\r\n\r\n", _HEAD_MAX)
        assert b" 101 " in head, head
        return socket

    async def receive(self) -> Sequence[bytes]:
        """Wait for the next text; raise what ended the connection."""
        try:
            while True:
                first, second = await self._reader.receive_exactly(2)
                size = second & 0x7F
                if size > 125:
                    size = int.from_bytes(
                        await self._reader.receive_exactly(2 if size == 126 else 8)
                    )
                data = await self._reader.receive_exactly(size) if size else b""
                if first == _FINAL | _TEXT:
                    return [data]
        except (
            anyio.ClosedResourceError,
            anyio.BrokenResourceError,
            anyio.IncompleteRead,
            anyio.EndOfStream,
        ) as error:
            self._end = self._end or ConnectionLost(reason=type(error).__name__)
            raise copy(self._end) from error

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send each message in a frame of its own."""
        async with self._sending:
            if self._end is not None:
                raise copy(self._end)
            for message in messages:
                await self._stream.send(_frame(message))

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Nothing goes without waiting."""
        if self._end is not None:
            raise copy(self._end)
        return False

    async def aclose(self) -> None:
        """Close the socket."""
        self._end = self._end or ConnectionClosed(reason="closed by us")
        await self._stream.aclose()

    async def cut(self) -> None:
        """Lose the connection, as networks do."""
        self._end = ConnectionLost(reason="cut")
        await self._stream.aclose()


def _frame(data: bytes) -> bytes:
    """A masked text frame; the mask of a client may be nought."""
    size = len(data)
    if size < 126:
        head = bytes([_FINAL | _TEXT, _MASKED | size])
    elif size < 2**16:
        head = bytes([_FINAL | _TEXT, _MASKED | 126]) + size.to_bytes(2)
    else:
        head = bytes([_FINAL | _TEXT, _MASKED | 127]) + size.to_bytes(8)
    return head + bytes(4) + data
