"""Speak with another process of the same user over a Unix socket: a message a line."""

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

# Make sure that a Unix socket is where only its owner can listen, answer and read.

BACKLOG = 128

_PATH_BYTES_MAX = 107 if sys.platform == "linux" else 103
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def bind_unix(path: Path) -> socket.socket:
    """A socket that listens at a path and that nobody but us and root can reach.

    Its directory is made if it is missing, and refused if it is not ours or others may write to
    it. A socket that a dead process left behind is replaced; one that answers is not. Raises
    `BlockingIOError` while another process is at the same in that directory.
    """
    _check_length(path)
    with _refusals(path):
        make_private(path.parent)
        with _own_directory(path):
            _remove_stale(path)
            listener = _stream_socket()
            try:
                listener.bind(str(path))
                os.chmod(path, 0o600)  # in time: nobody can connect before we listen
                listener.listen(BACKLOG)
            except OSError:
                listener.close()
                raise
            return listener


def connect_unix(path: Path) -> socket.socket:
    """A socket connected to a listener that is ours or root's.

    Raises `BlockingIOError` while too many wait to be accepted there.
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
    """Remove our socket, unless somebody has put another in its place."""
    with suppress(FileNotFoundError):
        if path.lstat().st_ino == inode:
            path.unlink()


def is_trusted(uid: int) -> bool:
    """Whether a user may speak with us: ourselves and root, who could do so anyway."""
    return uid in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        uid = struct.unpack("=iII", credentials)[1]
    else:
        xucred = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED
        uid = struct.unpack_from("=II", xucred)[1]
    return int(uid)


def _check_length(path: Path) -> None:
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        reason = f"its path has {length} bytes and the system allows {_PATH_BYTES_MAX}"
        raise SocketUnsafe(path=str(path), reason=reason)


@contextmanager
def _own_directory(path: Path) -> Generator[None]:
    """Hold the directory of a socket, so that no two processes clear it at once."""
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
    """Remove a socket of ours at which nobody answers; touch nothing else."""
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
            pass  # so many wait there that somebody must be listening
    raise SocketTaken(path=str(path))


def _stream_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


@contextmanager
def _refusals(path: Path) -> Generator[None]:
    """Name what the system refuses; that something is busy now is left to those who can wait."""
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
    """A connection over a Unix socket, whichever side opened it."""

    def __init__(self, connection: socket.socket, *, message_bytes_max: int) -> None:
        fd = connection.detach()
        self._stream = LineStream(
            read_fd=fd, write_fd=fd, message_bytes_max=message_bytes_max, judge=socket_failure
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
    listener = await retry_while_busy(bind_unix, path)
    return UnixServer(
        listener, path, connections_max=connections_max, message_bytes_max=message_bytes_max
    )


async def connect(path: Path, *, message_bytes_max: int = MESSAGE_BYTES_MAX) -> UnixTransport:
    """Connect to a socket where our own user or root listens."""
    connection = await retry_while_busy(connect_unix, path)
    return UnixTransport(connection, message_bytes_max=message_bytes_max)


async def retry_while_busy(attempt: Callable[[Path], socket.socket], path: Path) -> socket.socket:
    """Try until nobody else is in the way."""
    with anyio.move_on_after(_PATIENCE):
        while True:
            try:
                return attempt(path)
            except BlockingIOError:
                await anyio.sleep(_TRY_AGAIN)
    raise SocketRefused(path=str(path), reason="it stayed busy")
