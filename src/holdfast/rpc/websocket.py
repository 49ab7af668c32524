"""Speak with another process over a WebSocket, on TCP or on a Unix socket: a message each."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import NoReturn

import anyio
from picows import WSHandshakeError, WSInvalidStatusError

from holdfast.failures import Failure
from holdfast.rpc.core.tail import excerpt
from holdfast.rpc.core.websocket_address import TcpAddress, UnixAddress, read_address
from holdfast.rpc.core.websocket_admission import PATH
from holdfast.rpc.core.websocket_frames import Text
from holdfast.rpc.failures import (
    ConnectionLost,
    NameRefused,
    NotWebSocket,
    ServerFull,
    SocketRefused,
    TokenRefused,
    UpgradeRefused,
)
from holdfast.rpc.socket_place import dialled, is_trusted
from holdfast.rpc.unix import patiently
from holdfast.rpc.websocket_codec_loop import client_codec
from holdfast.rpc.websocket_dial_loop import dial_tcp
from holdfast.rpc.websocket_stream_loop import Codec, WebSocketLimits, WebSocketStream

CONNECT_LONGEST = 10.0


class WebSocketTransport:
    """A connection over a WebSocket, whichever side opened it."""

    def __init__(self, stream: WebSocketStream) -> None:
        assert stream.outbox is not None, "the handshake is done"
        self._stream, self._outbox = stream, stream.outbox

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
        return await self._stream.inbox.receive()

    async def send(self, messages: Sequence[Text]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        await self._outbox.send(messages)

    def offer(self, messages: Sequence[Text]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        return self._outbox.offer(messages)

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
            connection = await patiently(dialled, _behind_own_link(Path(address.path)))
        else:
            connection = await dial_tcp(address)
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
        if stream.outbox is None:
            await _raise_refusal(stream, codec, str(address))
        undo.pop_all()
    return WebSocketTransport(stream)


def _behind_own_link(path: Path) -> Path:
    """Where a link leads that we or root made: the app-server of Codex keeps its socket so."""
    if path.is_symlink() and is_trusted(path.lstat().st_uid):
        return path.resolve()
    return path


async def _raise_refusal(stream: WebSocketStream, codec: Codec, url: str) -> NoReturn:
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
