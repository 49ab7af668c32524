"""Speak with another process over a WebSocket, on TCP or on a Unix socket: a message each."""

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
    """A connection over a WebSocket, whichever side opened it."""

    def __init__(self, stream: WebSocketStream) -> None:
        assert stream.writer is not None, "the handshake is done"
        self._stream, self._writer = stream, stream.writer

    @property
    def is_closed(self) -> bool:
        """Whether all that it held has been released."""
        return self._stream.released.is_set()

    @property
    def guest(self) -> str:
        """Whose token the other side has shown; empty if it is not one of a guest."""
        return self._stream.guest

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raise what ended it."""
        return await self._stream.read_queue.receive()

    async def send(self, messages: Sequence[Text]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        await self._writer.send(messages)

    def offer(self, messages: Sequence[Text]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        return self._writer.offer(messages)

    async def aclose(self) -> None:
        """Say what is still unsaid and goodbye, but not for long, and end the connection."""
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
    """Connect to `ws://HOST:PORT`, or to `unix:///PATH` where our own user or root listens."""
    address = read_address(url)
    if token is not None and not token.isprintable():  # no header could carry it
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
    """Make a WebSocket of a connected socket, which is closed if the other side refuses."""
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
    """Where a link leads that we or root made: the app-server of Codex keeps its socket so."""
    if path.is_symlink() and is_trusted(path.lstat().st_uid):
        return path.resolve()
    return path


async def _raise_refusal(stream: WebSocketStream, codec: PicowsProtocol, url: str) -> NoReturn:
    """Say by name why there is no WebSocket."""
    if stream.failure is not None:  # whatever it is, it may be there again in a moment
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


# Listen for WebSockets, on TCP or on a Unix socket, open to no one by mistake.


class WebSocketServer:
    """Accepts connections at one address, up to a number; answers all others by HTTP."""

    def __init__(self, admission: Admission, url: str, path: Path | None = None) -> None:
        self.url = url
        self._admission, self._path = admission, path
        self._inode = 0 if path is None else path.lstat().st_ino

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is connected or about to be."""
        return self._admission.is_quiet

    async def accept(self) -> WebSocketTransport:
        """Wait for the next connection; raises `ConnectionClosed` once the server is closed."""
        return WebSocketTransport(await self._admission.accept())

    async def aclose(self) -> None:
        """Listen no more and remove the socket; connections already accepted live on."""
        if self._admission.is_open and self._path is not None:
            remove_socket(self._path, inode=self._inode)
        self._admission.close()

    def detach(self) -> socket.socket:
        """Accept no more, but go on listening: whoever comes waits for who has the socket next."""
        return self._admission.detach()


async def listen_websocket(
    url: str,
    *,
    token: str | None,
    names: Iterable[str] = (),
    guests: Mapping[bytes, str] | None = None,
    limits: ServerLimits | None = None,
) -> WebSocketServer:
    """Listen at `ws://HOST:PORT` or `unix:///PATH`; port 0 takes one that is free.

    Whoever connects must show the token, and call us by a loopback name, our address or one of
    `names`. Without a token only addresses are allowed that no other machine can reach. At a Unix
    socket only our own user and root are heard, whatever name they call us by. `guests` have tokens
    of their own; it is looked at anew for each who comes, and tells their names by the digests.
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
    """Accept, on the same terms, whoever comes to a socket that listens already."""
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
