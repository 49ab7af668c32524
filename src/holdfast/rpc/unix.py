"""Speak with another process of the same user over a Unix socket: a message a line."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio

from holdfast.rpc.core.ending import of_socket
from holdfast.rpc.core.framing import MESSAGE_BYTES_MAX
from holdfast.rpc.failures import ConnectionClosed, SocketRefused
from holdfast.rpc.socket_place import dialled, is_trusted, listening, peer_uid, remove
from holdfast.rpc.stream_loop import LineStream

CONNECTIONS_MAX = 64

_PATIENCE, _TRY_AGAIN = 5.0, 0.01
_FLUSH_LONGEST = 1.0
_NO_ROOM = 0.1


class UnixTransport:
    """A connection over a Unix socket, whichever side opened it."""

    def __init__(self, connection: socket.socket, *, message_bytes_max: int) -> None:
        fd = connection.detach()
        self._stream = LineStream(
            read_fd=fd, write_fd=fd, message_bytes_max=message_bytes_max, judge=of_socket
        )
        self._closed: anyio.Event | None = None

    @property
    def is_closed(self) -> bool:
        """Whether all that it held has been released."""
        return self._closed is not None and self._closed.is_set()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raise what ended it."""
        return await self._stream.reader.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        await self._stream.writer.send(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        return self._stream.writer.offer(messages)

    async def aclose(self) -> None:
        """Say what is still unsaid, but not for long, and end the connection."""
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = anyio.Event()
        with anyio.CancelScope(shield=True):
            self._stream.retire(ConnectionClosed(reason="closed by us"))
            with anyio.move_on_after(_FLUSH_LONGEST):
                await self._stream.writer.flushed()
            self._stream.close()
            self._closed.set()


class UnixServer:
    """Accepts connections of our own user and of root at one path, up to a number."""

    def __init__(
        self, listener: socket.socket, path: Path, *, connections_max: int, message_bytes_max: int
    ) -> None:
        self._listener, self._path = listener, path
        self._inode = path.lstat().st_ino
        self._connections_max, self._message_bytes_max = connections_max, message_bytes_max
        self._open: list[UnixTransport] = []

    async def accept(self) -> UnixTransport:
        """Wait for the next connection; strangers, and any beyond the limit, are hung up on.

        Raises `ConnectionClosed` once the server is closed.
        """
        while True:
            connection = await self._next()
            self._open = [transport for transport in self._open if not transport.is_closed]
            if is_trusted(peer_uid(connection)) and len(self._open) < self._connections_max:
                made = UnixTransport(connection, message_bytes_max=self._message_bytes_max)
                self._open.append(made)
                return made
            connection.close()

    async def aclose(self) -> None:
        """Listen no more and remove the socket; connections already accepted live on."""
        if self._listener.fileno() >= 0:
            remove(self._path, inode=self._inode)
            anyio.notify_closing(self._listener)
            self._listener.close()

    async def _next(self) -> socket.socket:
        while self._listener.fileno() >= 0:
            try:
                await anyio.wait_readable(self._listener)
                return self._listener.accept()[0]
            except (BlockingIOError, ConnectionAbortedError, anyio.ClosedResourceError):
                continue
            except OSError:  # no descriptor is free: whoever waits is not lost, only late
                await anyio.sleep(_NO_ROOM)
        raise ConnectionClosed(reason="closed by us")


async def listen(
    path: Path,
    *,
    connections_max: int = CONNECTIONS_MAX,
    message_bytes_max: int = MESSAGE_BYTES_MAX,
) -> UnixServer:
    """Listen at a path that nobody but our own user and root can reach."""
    listener = await patiently(listening, path)
    return UnixServer(
        listener, path, connections_max=connections_max, message_bytes_max=message_bytes_max
    )


async def connect(path: Path, *, message_bytes_max: int = MESSAGE_BYTES_MAX) -> UnixTransport:
    """Connect to a socket where our own user or root listens."""
    connection = await patiently(dialled, path)
    return UnixTransport(connection, message_bytes_max=message_bytes_max)


async def patiently(attempt: Callable[[Path], socket.socket], path: Path) -> socket.socket:
    """Try until nobody else is in the way."""
    with anyio.move_on_after(_PATIENCE):
        while True:
            try:
                return attempt(path)
            except BlockingIOError:
                await anyio.sleep(_TRY_AGAIN)
    raise SocketRefused(path=str(path), reason="it stayed busy")
