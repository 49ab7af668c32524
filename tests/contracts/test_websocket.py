"""A WebSocket keeps the promises of every transport, over TCP and over a Unix socket."""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from pathlib import Path

import anyio
import pytest

from holdfast.rpc.testing import TransportContract
from holdfast.rpc.transports.websocket import (
    WebSocketTransport,
    connect_websocket,
    listen_websocket,
    upgrade,
)
from holdfast.rpc.transports.websocket_protocol import (
    ADMITTED,
    TcpAddress,
    UnixAddress,
    read_address,
)
from holdfast.rpc.transports.websocket_stream_loop import (
    ServerLimits,
    WebSocketLimits,
    WebSocketStream,
    server_codec,
)

pytestmark = pytest.mark.anyio

TOKEN = "an open secret"
NO_LIMITS = WebSocketLimits(message_bytes_max=2**30)


class SocketFarEnd:
    """The far end of a WebSocket, which can also write half a frame to its socket."""

    def __init__(
        self, transport: WebSocketTransport, connection: socket.socket, *, is_client: bool
    ) -> None:
        self._connection, self._is_client = connection, is_client
        self.receive = transport.receive
        self.send = transport.send
        self.offer = transport.offer
        self.aclose = transport.aclose

    async def cut(self, messages: Sequence[bytes], *, after: int) -> None:
        data = b"".join(frame(message, is_client=self._is_client) for message in messages)[:after]
        assert self._connection.send(data) == len(data)
        self._connection.shutdown(socket.SHUT_RDWR)


def frame(message: bytes, *, is_client: bool) -> bytes:
    """A small text message as it looks on the wire; the mask of this client changes nothing."""
    assert len(message) < 126
    return bytes([0x81, 0x80 * is_client + len(message)]) + bytes(4 * is_client) + message


class WebSocketContract(TransportContract):
    """What all have in common; subclasses say which side is ours, and where."""

    far_is_client: bool

    @abstractmethod
    def address(self) -> TcpAddress | UnixAddress:
        """Where to listen."""

    def wire_sizes(self, messages: Sequence[bytes]) -> list[tuple[int, int]]:
        frames = [frame(message, is_client=self.far_is_client) for message in messages]
        return [(end, end) for end in accumulate(map(len, frames))]

    def tells_partial(self, told: str, partial: str) -> bool:
        """What came of a frame is not told: picows keeps it to itself."""
        return told == ""


class Client(WebSocketContract):
    """We dialled, somebody else listens."""

    far_is_client = False

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[WebSocketTransport, SocketFarEnd]]:
        limits = WebSocketLimits(message_bytes_max=message_bytes_max)
        with listening(self.address()) as listener:
            async with anyio.create_task_group() as tasks:
                ours: list[WebSocketTransport] = []

                async def dial() -> None:
                    ours.append(await connect_websocket(url_of(listener), limits=limits))

                tasks.start_soon(dial)
                await anyio.wait_readable(listener)
                connection = listener.accept()[0]
                far = await admitted(connection)
        yield ours[0], SocketFarEnd(far, connection, is_client=False)


class Server(WebSocketContract):
    """We listen, somebody else dialled."""

    far_is_client = True

    @asynccontextmanager
    async def connect(
        self, *, message_bytes_max: int
    ) -> AsyncGenerator[tuple[WebSocketTransport, SocketFarEnd]]:
        limits = ServerLimits(connection=WebSocketLimits(message_bytes_max=message_bytes_max))
        server = await listen_websocket(str(self.address()), token=TOKEN, limits=limits)
        address = read_address(server.url)
        connection = connected(address)
        far = await upgrade(connection, address, token=TOKEN, limits=NO_LIMITS)
        ours = await server.accept()
        await server.aclose()
        yield ours, SocketFarEnd(far, connection, is_client=True)


class TestTcpClient(Client):
    """To an address and a port."""

    def address(self) -> TcpAddress:
        return TcpAddress("127.0.0.1", 0)


class TestTcpServer(Server):
    """At an address and a port."""

    def address(self) -> TcpAddress:
        return TcpAddress("127.0.0.1", 0)


class TestUnixClient(Client):
    """To a path."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        self.path = tmp_path / "s"

    def address(self) -> UnixAddress:
        self.path.unlink(missing_ok=True)
        return UnixAddress(str(self.path))


class TestUnixServer(Server):
    """At a path."""

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "private" / "s"

    def address(self) -> UnixAddress:
        return UnixAddress(str(self.path))


async def admitted(connection: socket.socket) -> WebSocketTransport:
    """The server's side of a socket that was accepted by hand."""
    settled = anyio.Event()
    stream = WebSocketStream(connection, NO_LIMITS, settled.set)
    codec = server_codec(stream, judge=lambda _: ADMITTED, limits=NO_LIMITS)
    stream.start(codec, handshake_longest=5.0)
    await settled.wait()
    return WebSocketTransport(stream)


def listening(address: TcpAddress | UnixAddress) -> socket.socket:
    """A listener that knows nothing of WebSockets."""
    if isinstance(address, UnixAddress):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address.path)
    else:
        listener = socket.socket()
        listener.bind((address.host, address.port))
    listener.listen()
    return listener


def url_of(listener: socket.socket) -> str:
    """Where it listens, as a URL."""
    name = listener.getsockname()
    return f"unix://{name}" if listener.family == socket.AF_UNIX else str(TcpAddress(*name))


def connected(address: TcpAddress | UnixAddress) -> socket.socket:
    """A plain socket, connected."""
    if isinstance(address, UnixAddress):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.path)
        return connection
    return socket.create_connection((address.host, address.port))
