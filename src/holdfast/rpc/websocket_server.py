"""Listen for WebSockets, on TCP or on a Unix socket, open to no one by mistake."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from holdfast.rpc.core.websocket_address import TcpAddress, UnixAddress, read_address
from holdfast.rpc.core.websocket_admission import Policy, host_names
from holdfast.rpc.socket_place import listening, remove
from holdfast.rpc.unix import patiently
from holdfast.rpc.websocket import WebSocketTransport
from holdfast.rpc.websocket_dial_loop import listening_tcp
from holdfast.rpc.websocket_server_loop import Door, ServerLimits


class WebSocketServer:
    """Accepts connections at one address, up to a number; answers all others by HTTP."""

    def __init__(self, door: Door, url: str, path: Path | None = None) -> None:
        self.url = url
        self._door, self._path = door, path
        self._inode = 0 if path is None else path.lstat().st_ino

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is connected or about to be."""
        return self._door.is_quiet

    async def accept(self) -> WebSocketTransport:
        """Wait for the next connection; raises `ConnectionClosed` once the server is closed."""
        return WebSocketTransport(await self._door.fetch())

    async def aclose(self) -> None:
        """Listen no more and remove the socket; connections already accepted live on."""
        if self._door.is_open and self._path is not None:
            remove(self._path, inode=self._inode)
        self._door.close()

    def leave(self) -> socket.socket:
        """Accept no more, but go on listening: whoever comes waits for who has the socket next."""
        return self._door.leave()


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
        listener = await patiently(listening, Path(address.path))
    else:
        listener = await listening_tcp(address, has_token=bool(token))
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
        policy = Policy(hosts=None, token=token, guests=known)
        door = Door(listener, policy=policy, limits=limits)
        return WebSocketServer(door, str(UnixAddress(path)), Path(path))
    bound = TcpAddress(*listener.getsockname()[:2])
    hosts = host_names(bound.host, bound.port, names)
    policy = Policy(hosts=hosts, token=token, guests=known)
    return WebSocketServer(Door(listener, policy=policy, limits=limits), str(bound))
