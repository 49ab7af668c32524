"""WebSocket transport, client and server, over TCP or a Unix socket: one message per text frame."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn

import anyio
from picows import WSHandshakeError, WSInvalidStatusError

from holdfast.failures import Failure
from holdfast.rpc.failures import (
    ConnectionLost,
    NameRefused,
    NotWebSocket,
    ServerFull,
    SocketRefused,
    TokenRefused,
    UpgradeRefused,
)
from holdfast.rpc.framing import excerpt
from holdfast.rpc.transports.unix import (
    bind_unix,
    connect_unix,
    is_trusted,
    remove_socket,
    retry_while_busy,
)
from holdfast.rpc.transports.websocket_protocol import (
    PATH,
    AdmissionPolicy,
    TcpAddress,
    Text,
    UnixAddress,
    host_names,
    read_address,
)
from holdfast.rpc.transports.websocket_stream_loop import (
    Admission,
    PicowsProtocol,
    ServerLimits,
    WebSocketLimits,
    WebSocketStream,
    client_codec,
)
from holdfast.rpc.transports.websocket_wire_loop import bind_tcp, connect_tcp

CONNECT_LONGEST = 10.0


class WebSocketTransport:
    """Connection over a WebSocket, of either side."""

    def __init__(self, stream: WebSocketStream) -> None:
        assert stream.writer is not None, "the handshake is done"
        self._stream, self._writer = stream, stream.writer

    @property
    def is_closed(self) -> bool:
        """Whether its socket has been released."""
        return self._stream.released.is_set()

    @property
    def guest(self) -> str:
        """The name bound to the client's token; empty if the client used the server's own token."""
        return self._stream.guest

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raises the failure that ended it."""
        return await self._stream.read_queue.receive()

    async def send(self, messages: Sequence[Text]) -> None:
        """Send messages in order; waits while the other side applies backpressure."""
        await self._writer.send(messages)

    def offer(self, messages: Sequence[Text]) -> bool:
        """Send messages if the buffer has room; returns whether it did."""
        return self._writer.offer(messages)

    async def aclose(self) -> None:
        """Flush the buffer, do the close handshake for at most a second, and release the socket."""
        self._stream.close()
        with anyio.CancelScope(shield=True):
            await self._stream.released.wait()


async def connect_websocket(
    url: str,
    *,
    token: str | None = None,
    limits: WebSocketLimits | None = None,
    connect_longest: float = CONNECT_LONGEST,
) -> WebSocketTransport:
    """Connect to `ws://HOST:PORT`, or to `unix:///PATH` of our user or root."""
    address = read_address(url)
    # No header could carry it.
    if token is not None and not token.isprintable():
        raise TokenRefused(url=str(address))
    with anyio.move_on_after(connect_longest):
        if isinstance(address, UnixAddress):
            connection = await retry_while_busy(connect_unix, _behind_own_link(Path(address.path)))
        else:
            connection = await connect_tcp(address)
        limits = limits or WebSocketLimits()
        longest = connect_longest
        return await upgrade(connection, address, token=token, limits=limits, longest=longest)
    reason = f"no answer within {connect_longest:g} seconds"
    raise SocketRefused(path=str(address), reason=reason)


async def upgrade(
    connection: socket.socket,
    address: TcpAddress | UnixAddress,
    *,
    token: str | None,
    limits: WebSocketLimits,
    longest: float = CONNECT_LONGEST,
) -> WebSocketTransport:
    """Do the client handshake on a connected socket, which is closed if the server refuses."""
    settled = anyio.Event()
    stream = WebSocketStream(connection, limits, settled.set)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    codec = client_codec(stream, host=address.authority, path=PATH, headers=headers, limits=limits)
    with ExitStack() as undo:
        undo.callback(stream.release)
        stream.start(codec, handshake_longest=longest)
        await settled.wait()
        if stream.writer is None:
            await _raise_refusal(stream, codec, str(address))
        undo.pop_all()
    return WebSocketTransport(stream)


def _behind_own_link(path: Path) -> Path:
    """Resolve a symlink that our user or root made: the Codex app-server keeps its socket
    behind one.
    """
    if path.is_symlink() and is_trusted(path.lstat().st_uid):
        return path.resolve()
    return path


async def _raise_refusal(stream: WebSocketStream, codec: PicowsProtocol, url: str) -> NoReturn:
    """Raise the failure that names why the handshake failed."""
    # Whatever it is, it may be there again in a moment.
    if stream.failure is not None:
        reason = f"{url} hung up before it had answered"
        raise ConnectionLost(reason=reason) from stream.failure
    try:
        await codec.wait_until_handshake_complete()
    except WSInvalidStatusError as error:
        assert error.response is not None
        raise _refusal(error.response.status, url) from error
    except WSHandshakeError as error:
        raise NotWebSocket(url=url, reason=excerpt(str(error).encode())) from error
    raise AssertionError("a handshake that failed says why")


def _refusal(status: HTTPStatus, url: str) -> Failure:
    match status:
        case HTTPStatus.UNAUTHORIZED:
            return TokenRefused(url=url)
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return ServerFull(url=url)
        case HTTPStatus.MISDIRECTED_REQUEST:
            return NameRefused(url=url, name=url.partition("://")[2].partition("/")[0])
        case _:
            return UpgradeRefused(url=url, status=int(status))


class WebSocketServer:
    """Accepts WebSocket connections at one address, up to a limit; refuses all others by HTTP
    status.
    """

    def __init__(self, admission: Admission, url: str, path: Path | None = None) -> None:
        self.url = url
        self._admission, self._path = admission, path
        self._inode = 0 if path is None else path.lstat().st_ino

    @property
    def is_quiet(self) -> bool:
        """Whether no client is connected or in its handshake."""
        return self._admission.is_quiet

    async def accept(self) -> WebSocketTransport:
        """Wait for the next connection; raises `ConnectionClosed` once the server is closed."""
        return WebSocketTransport(await self._admission.accept())

    async def aclose(self) -> None:
        """Stop listening and remove the socket; accepted connections stay open."""
        if self._admission.is_open and self._path is not None:
            remove_socket(self._path, inode=self._inode)
        self._admission.close()

    def detach(self) -> socket.socket:
        """Stop accepting and return the listening socket; new clients wait in its backlog."""
        return self._admission.detach()


async def listen_websocket(
    url: str,
    *,
    token: str | None,
    names: Iterable[str] = (),
    guests: Mapping[bytes, str] | None = None,
    limits: ServerLimits | None = None,
) -> WebSocketServer:
    """Listen at `ws://HOST:PORT` or `unix:///PATH`; port 0 picks a free port.

    Clients must send the token, and a `Host` header with a loopback name, our address or one of
    `names`. Without a token only loopback addresses are allowed. On a Unix socket only our user and
    root are accepted, whatever the `Host`. `guests` maps digests of further tokens to their names;
    it is read again for each client.
    """
    address = read_address(url)
    if isinstance(address, UnixAddress):
        listener = await retry_while_busy(bind_unix, Path(address.path))
    else:
        listener = await bind_tcp(address, has_token=bool(token))
    return resume_websocket(listener, token=token, names=names, guests=guests, limits=limits)


def resume_websocket(
    listener: socket.socket,
    *,
    token: str | None,
    names: Iterable[str] = (),
    guests: Mapping[bytes, str] | None = None,
    limits: ServerLimits | None = None,
) -> WebSocketServer:
    """Accept clients, under the same rules, on a socket that is listening already."""
    limits = limits or ServerLimits()
    known: Mapping[bytes, str] = {} if guests is None else guests
    listener.setblocking(False)
    if listener.family == socket.AF_UNIX:
        path = listener.getsockname()
        policy = AdmissionPolicy(hosts=None, token=token, guests=known)
        admission = Admission(listener, policy=policy, limits=limits)
        return WebSocketServer(admission, str(UnixAddress(path)), Path(path))
    bound = TcpAddress(*listener.getsockname()[:2])
    hosts = host_names(bound.host, bound.port, names)
    policy = AdmissionPolicy(hosts=hosts, token=token, guests=known)
    return WebSocketServer(Admission(listener, policy=policy, limits=limits), str(bound))
