"""Whatever bytes come, a stream ends by name, tells the other side why, and stays small."""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, MessageTooLarge
from holdfast.rpc.transports.websocket import WebSocketTransport
from holdfast.rpc.transports.websocket_protocol import ADMITTED, close_payload
from holdfast.rpc.transports.websocket_stream_loop import (
    WebSocketLimits,
    WebSocketStream,
    server_codec,
)

pytestmark = pytest.mark.anyio

LIMITS = WebSocketLimits(message_bytes_max=64 * 2**20, frame_bytes_max=16 * 2**20)
REQUEST = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
SOON = 60.0


@dataclass(frozen=True)
class RawClient:
    """The other side, byte by byte."""

    connection: socket.socket

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            await anyio.wait_writable(self.connection)
            view = view[self.connection.send(view) :]

    async def receive(self, size: int = 2**16) -> bytes:
        await anyio.wait_readable(self.connection)
        return self.connection.recv(size)

    async def receive_all(self) -> bytes:
        data = b""
        while part := await self.receive():
            data += part
        return data


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[WebSocketTransport, RawClient]]:
    """Our end of a Unix socket pair after the handshake, and the raw other end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    settled = anyio.Event()
    stream = WebSocketStream(ours, LIMITS, settled.set)
    stream.start(
        server_codec(stream, judge=lambda _: ADMITTED, limits=LIMITS), handshake_longest=SOON
    )
    client = RawClient(theirs)
    with anyio.fail_after(SOON), theirs:
        await client.send(REQUEST)
        assert (await client.receive()).startswith(b"HTTP/1.1 101 ")
        await settled.wait()
        transport = WebSocketTransport(stream)
        try:
            yield transport, client
        finally:
            with anyio.CancelScope(shield=True):
                theirs.close()
                await transport.aclose()


def frame(first: int, payload: bytes, *, size: int | None = None) -> bytes:
    """A masked frame whose mask changes nothing; its head may promise more than it has."""
    length = len(payload) if size is None else size
    if length < 126:
        head = bytes((first, 0x80 | length))
    elif length < 2**16:
        head = bytes((first, 0x80 | 126)) + length.to_bytes(2)
    else:
        head = bytes((first, 0x80 | 127)) + length.to_bytes(8)
    return head + bytes(4) + payload


def broken(reason: str) -> ConnectionLost:
    return ConnectionLost(reason=f"the other side broke the protocol: {reason}")


TOO_LARGE = MessageTooLarge(bytes_max=LIMITS.message_bytes_max)
CLOSED = ConnectionClosed(reason="the other side closed it")
FIN = 0x80
TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA


@pytest.mark.promise("X12")
@pytest.mark.parametrize(
    ("data", "failure", "code"),
    [
        (frame(FIN | 0x40 | TEXT, b"{}"), broken("a reserved bit is set"), 1002),
        (frame(FIN | 0x20 | PING, b""), broken("a reserved bit is set"), 1002),
        (frame(FIN | TEXT, b"\xff"), broken("a text is not UTF-8"), 1007),
        (frame(TEXT, b"\xff"), broken("a text is not UTF-8"), 1007),
        (frame(FIN, b"{}"), broken("there is no message to continue"), 1002),
        (
            frame(TEXT, b"{") + frame(FIN | TEXT, b"{}"),
            broken("the last message is not finished"),
            1002,
        ),
        (frame(FIN | TEXT, b"", size=17 * 2**20), TOO_LARGE, 1009),
        (frame(FIN | TEXT, b"", size=2**62), TOO_LARGE, 1009),
        (frame(FIN | CLOSE, b""), CLOSED, 1000),
        (frame(FIN | CLOSE, close_payload(1001, "bye")), CLOSED, 1001),
        (frame(FIN | CLOSE, close_payload(1000)) + frame(FIN | CLOSE, b""), CLOSED, 1000),
        (frame(FIN | CLOSE, close_payload(1006)), broken("close code 1006"), 1002),
    ],
)
async def test_what_ends_it_is_named_and_told(data: bytes, failure: Failure, code: int) -> None:
    async with serving() as (transport, client):
        await client.send(data)
        with pytest.raises(Failure) as ended:
            await transport.receive()
        assert ended.value == failure
        said = await client.receive_all()
        assert (said[0], said[2:4]) == (FIN | CLOSE, code.to_bytes(2))
        assert len(said) == 2 + said[1], "nothing follows a goodbye"


@pytest.mark.parametrize(
    "data",
    [
        frame(FIN | 0x3, b""),
        frame(FIN | 0xB, b""),
        frame(PING, b""),
        frame(FIN | PING, b"x" * 126),
        frame(FIN | CLOSE, b"x"),
        b"\x81\x02{}",
    ],
)
async def test_frames_that_cannot_be_are_refused(data: bytes) -> None:
    """Opcodes that do not exist, control frames in parts or too long, and a missing mask."""
    async with serving() as (transport, client):
        await client.send(frame(FIN | TEXT, b"{}") + data)
        assert await transport.receive() == [b"{}"]
        with pytest.raises(ConnectionLost):
            await transport.receive()
        assert (await client.receive_all())[:4:2] == bytes((FIN | CLOSE, 1002 >> 8))


async def test_control_frames_may_come_between_fragments() -> None:
    async with serving() as (transport, client):
        await client.send(
            frame(TEXT, b"[1,") + frame(FIN | PING, b"p") + frame(0, b"2")
            + frame(FIN | PONG, b"") + frame(FIN, b"]") + frame(FIN | BINARY, b"{}")
        )  # fmt: skip
        assert await transport.receive() == [b"[1,2]", b"{}"]
        assert await client.receive() == bytes((FIN | PONG, 1)) + b"p"


async def test_a_message_in_fragments_is_refused_before_it_is_held() -> None:
    """Sixty-four fragments of a mebibyte and one byte more."""
    async with serving() as (transport, client), anyio.create_task_group() as tasks:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        part = frame(0, b"x" * 2**20)

        async def flood() -> None:
            await client.send(frame(TEXT, b"x"))
            for _ in range(200):
                await client.send(part)

        tasks.start_soon(flood)
        with pytest.raises(MessageTooLarge):
            await transport.receive()
        tasks.cancel_scope.cancel()
        held = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 2**10
        assert held < 2 * LIMITS.message_bytes_max


async def test_one_who_pings_without_reading_is_answered_in_bounded_memory() -> None:
    """Of the pings that could not be answered the last one is, once there is room."""
    async with serving() as (transport, client):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flood = frame(FIN | PING, b"x" * 125) * 8
        for _ in range(20_000):
            await client.send(flood)
        await client.send(frame(FIN | PING, b"last"))
        await client.send(frame(FIN | TEXT, b"{}"))
        assert await transport.receive() == [b"{}"]
        held = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 2**10
        assert held < 8 * 2**20
        said = b""
        while not said.endswith(b"last"):
            said += await client.receive()


@pytest.mark.parametrize("after", range(0, len(REQUEST), 7))
async def test_a_handshake_that_breaks_off_leaves_nothing(after: int) -> None:
    ours, theirs = socket.socketpair()
    settled = anyio.Event()
    stream = WebSocketStream(ours, LIMITS, settled.set)
    stream.start(
        server_codec(stream, judge=lambda _: ADMITTED, limits=LIMITS), handshake_longest=SOON
    )
    theirs.send(REQUEST[:after])
    theirs.close()
    with anyio.fail_after(SOON):
        await stream.released.wait()
    assert (stream.writer, ours.fileno()) == (None, -1)


async def test_empty_messages_that_nobody_receives_are_not_read_without_end() -> None:
    empty = bytes((0x81, 0x80, 0, 0, 0, 0))
    async with serving() as (_, theirs):
        with anyio.move_on_after(SOON):
            for _ in range(100):
                sent = False
                with anyio.move_on_after(0.5):
                    await theirs.send(empty * 10_000)
                    sent = True
                if not sent:
                    return
        pytest.fail("it is still read")
