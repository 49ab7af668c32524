"""Transport over Unix sockets of the same user: one message per line, permissions checked."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import anyio

from holdfast.rpc.failures import (
    ConnectionClosed,
    SocketRefused,
    SocketTaken,
    SocketUnsafe,
    SystemExhausted,
)
from holdfast.rpc.framing import MESSAGE_BYTES_MAX, socket_failure
from holdfast.rpc.transports.stream_loop import LineStream
from holdfast.world import make_private

BACKLOG = 128

_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def bind_unix(path: Path) -> socket.socket:
    """Bind and listen at a path that only our user and root can reach.

    Creates the directory if it is missing; raises `SocketUnsafe` if the directory belongs to
    another user or is writable by others. A stale socket of a dead process is replaced; a socket
    that accepts connections is not (`SocketTaken`). Raises `BlockingIOError` while another process
    holds the lock of the directory.
    """
    _check_length(path)
    with _refusals(path):
        make_private(path.parent)
        with _own_directory(path):
            _remove_stale(path)
            listener = _stream_socket()
            try:
                listener.bind(str(path))
                # Between bind and listen no client can connect, so there is no window with wider
                # permissions.
                os.chmod(path, 0o600)
                listener.listen(BACKLOG)
            except OSError:
                listener.close()
                raise
            return listener


def connect_unix(path: Path) -> socket.socket:
    """Connect to a listener of our user or root; raises `SocketUnsafe` for any other.

    Raises `BlockingIOError` while the listener's backlog is full.
    """
    _check_length(path)
    with _refusals(path):
        found = path.lstat()
        if not stat.S_ISSOCK(found.st_mode):
            raise SocketUnsafe(path=str(path), reason="it is not a socket")
        if not is_trusted(found.st_uid):
            raise SocketUnsafe(path=str(path), reason=f"it belongs to user {found.st_uid}")
        connection = _stream_socket()
        try:
            connection.connect(str(path))
            listener = peer_uid(connection)
        except OSError:
            connection.close()
            raise
        if not is_trusted(listener):
            connection.close()
            raise SocketUnsafe(path=str(path), reason=f"user {listener} listens there")
        return connection


def remove_socket(path: Path, *, inode: int) -> None:
    """Remove our socket, unless another process has replaced it (compared by inode)."""
    with suppress(FileNotFoundError):
        if path.lstat().st_ino == inode:
            path.unlink()


def is_trusted(uid: int) -> bool:
    """Whether a user id is our own or root, which could connect anyway."""
    return uid in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the peer, as the kernel reports it (SO_PEERCRED)."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = struct.unpack("=iII", credentials)[1]
    else:
        # SOL_LOCAL, LOCAL_PEERCRED.
        xucred = connection.getsockopt(0, 1, 76)
        uid = struct.unpack_from("=II", xucred)[1]
    return int(uid)


def _check_length(path: Path) -> None:
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        reason = f"its path has {length} bytes and the system allows {_PATH_BYTES_MAX}"
        raise SocketUnsafe(path=str(path), reason=reason)


@contextmanager
def _own_directory(path: Path) -> Generator[None]:
    """Lock the directory of a socket (flock), so that no two processes remove a stale socket
    at once.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(path.parent, flags)
    try:
        found = os.fstat(directory)
        if found.st_uid != os.geteuid():
            reason = f"its directory belongs to user {found.st_uid}"
            raise SocketUnsafe(path=str(path), reason=reason)
        if found.st_mode & _OTHERS_MAY_WRITE:
            raise SocketUnsafe(path=str(path), reason="others may write to its directory")
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(directory)


def _remove_stale(path: Path) -> None:
    """Remove a socket of ours that refuses connections; touches nothing else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SocketUnsafe(path=str(path), reason="something that is not a socket is there")
    if found.st_uid != os.geteuid():
        raise SocketUnsafe(path=str(path), reason=f"it belongs to user {found.st_uid}")
    with closing(_stream_socket()) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            # The backlog is full, so a process is listening.
            pass
    raise SocketTaken(path=str(path))


def _stream_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


@contextmanager
def _refusals(path: Path) -> Generator[None]:
    """Convert OSError to failures; `BlockingIOError` passes for callers that retry."""
    try:
        yield
    except BlockingIOError:
        raise
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise SocketRefused(path=str(path), reason=str(error.strerror).lower()) from error
    except OSError as error:
        reason = str(error.strerror).lower()
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            raise SystemExhausted(reason=reason) from error
        raise SocketUnsafe(path=str(path), reason=reason) from error


CONNECTIONS_MAX = 64

_PATIENCE, _TRY_AGAIN = 5.0, 0.01
_FLUSH_LONGEST = 1.0
_NO_ROOM = 0.1


class UnixTransport:
    """Connection over a Unix socket, of either side."""

    def __init__(self, connection: socket.socket, *, message_bytes_max: int) -> None:
        fd = connection.detach()
        self._stream = LineStream(
            read_fd=fd, write_fd=fd, message_bytes_max=message_bytes_max, judge=socket_failure
        )
        self._closed: anyio.Event | None = None

    @property
    def is_closed(self) -> bool:
        """Whether its descriptor has been released."""
        return self._closed is not None and self._closed.is_set()

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields; raises the failure that ended it."""
        return await self._stream.reader.receive()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the other side applies backpressure."""
        await self._stream.writer.send(messages)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the buffer has room; returns whether it did."""
        return self._stream.writer.offer(messages)

    async def aclose(self) -> None:
        """Flush the buffer for at most a second, then close the connection."""
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
    """Accepts connections of our user and root at one path, up to a limit."""

    def __init__(
        self, listener: socket.socket, path: Path, *, connections_max: int, message_bytes_max: int
    ) -> None:
        self._listener, self._path = listener, path
        self._inode = path.lstat().st_ino
        self._connections_max, self._message_bytes_max = connections_max, message_bytes_max
        self._open: list[UnixTransport] = []

    async def accept(self) -> UnixTransport:
        """Wait for the next connection; closes connections of other users and those over the limit.

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
        """Stop listening and remove the socket; accepted connections stay open."""
        if self._listener.fileno() >= 0:
            remove_socket(self._path, inode=self._inode)
            anyio.notify_closing(self._listener)
            self._listener.close()

    async def _next(self) -> socket.socket:
        while self._listener.fileno() >= 0:
            try:
                await anyio.wait_readable(self._listener)
                return self._listener.accept()[0]
            except (BlockingIOError, ConnectionAbortedError, anyio.ClosedResourceError):
                continue
            except OSError:
                # Out of descriptors (EMFILE): clients stay in the backlog until the retry.
                await anyio.sleep(_NO_ROOM)
        raise ConnectionClosed(reason="closed by us")


async def listen(
    path: Path,
    *,
    connections_max: int = CONNECTIONS_MAX,
    message_bytes_max: int = MESSAGE_BYTES_MAX,
) -> UnixServer:
    """Listen at a path that only our user and root can reach."""
    listener = await retry_while_busy(bind_unix, path)
    return UnixServer(
        listener, path, connections_max=connections_max, message_bytes_max=message_bytes_max
    )


async def connect(path: Path, *, message_bytes_max: int = MESSAGE_BYTES_MAX) -> UnixTransport:
    """Connect to a socket of our user or root."""
    connection = await retry_while_busy(connect_unix, path)
    return UnixTransport(connection, message_bytes_max=message_bytes_max)


async def retry_while_busy(attempt: Callable[[Path], socket.socket], path: Path) -> socket.socket:
    """Retry an attempt while it raises `BlockingIOError`, for at most five seconds."""
    with anyio.move_on_after(_PATIENCE):
        while True:
            try:
                return attempt(path)
            except BlockingIOError:
                await anyio.sleep(_TRY_AGAIN)
    raise SocketRefused(path=str(path), reason="it stayed busy")
