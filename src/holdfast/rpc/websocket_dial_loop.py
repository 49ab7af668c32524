"""Open TCP sockets: to somebody who listens, or to listen ourselves."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import ExitStack

from holdfast.rpc.core.websocket_address import TcpAddress
from holdfast.rpc.core.websocket_admission import needs_token
from holdfast.rpc.failures import (
    ListenerUnprotected,
    ListenRefused,
    SocketRefused,
    SocketTaken,
    SystemExhausted,
)

BACKLOG = 1024

_Place = tuple[int, tuple[str | int | bytes, ...]]  # a family, and an address in its form

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


async def dial_tcp(address: TcpAddress) -> socket.socket:
    """A socket connected to the first of the addresses of a host where somebody answers."""
    loop = asyncio.get_running_loop()
    reason = "it has no address"
    for family, place in await _places(address):
        with ExitStack() as undo:
            connection = undo.enter_context(_stream_socket(family))
            try:
                await loop.sock_connect(connection, place)
            except OSError as error:
                reason = _reason(error)
            else:
                undo.pop_all()
                return connection
    raise SocketRefused(path=str(address), reason=reason)


async def listening_tcp(address: TcpAddress, *, has_token: bool) -> socket.socket:
    """A socket that listens at the first address of a host, for others only with a token."""
    places = await _places(address)
    if not places:
        raise ListenRefused(url=str(address), reason="it has no address")
    family, place = places[0]
    if needs_token(str(place[0])) and not has_token:
        raise ListenerUnprotected(url=str(address))
    listener = _stream_socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SocketTaken(path=str(address)) from error
        raise ListenRefused(url=str(address), reason=_reason(error)) from error
    return listener


async def _places(address: TcpAddress) -> list[_Place]:
    """Where a host may be; numbers are not looked up, for that would take a thread."""
    loop = asyncio.get_running_loop()
    where = address.host, address.port
    try:
        found = socket.getaddrinfo(
            *where, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        try:
            found = await loop.getaddrinfo(*where, type=socket.SOCK_STREAM)
        except OSError as error:
            raise SocketRefused(path=str(address), reason=_reason(error)) from error
    return [
        (family, (str(place[0]), int(place[1]), *place[2:])) for family, _, _, _, place in found
    ]


def _stream_socket(family: int) -> socket.socket:
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        if error.errno in _EXHAUSTED:
            raise SystemExhausted(reason=_reason(error)) from error
        raise
    made.setblocking(False)
    return made


def _reason(error: OSError) -> str:
    """What the system says; the loop writes its own words over those of a refused connection."""
    is_lookup = isinstance(error, socket.gaierror) or error.errno is None
    return str(error.strerror if is_lookup else os.strerror(error.errno or 0)).lower()
