"""Socket I/O of a WebSocket, and the transport that picows writes to.

picows is written for asyncio transports over TCP. `HeldWrites` replaces that transport: the same
frames go over Unix sockets too, small messages leave in one write, and picows sends nothing on its
own: its automatic close frame could overtake the reply to an earlier frame. See docs/design.

Decision: docs/decisions/0040-websocket-frames-by-picows.md
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from typing import Protocol

from holdfast.rpc.failures import (
    ListenerUnprotected,
    ListenRefused,
    SocketRefused,
    SocketTaken,
    SystemExhausted,
)
from holdfast.rpc.transports.websocket_protocol import TcpAddress, needs_token

READ_BYTES = 256 * 2**10
UNSENT_BYTES_MAX = 256 * 2**10

# Of one call: the kernel takes twice as many.
_PARTS_AT_ONCE = 512
# The way to send that every system has and lets everybody choose.
_UNPACED = b"reno"


class ReadBuffer(Protocol):
    """Provides memory to read into, and parses what was read (as `asyncio.BufferedProtocol`)."""

    def get_buffer(self, size_hint: int, /) -> memoryview: ...

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many have come."""
        ...


class SocketEvents(Protocol):
    """Callbacks of a socket."""

    def read_done(self) -> None:
        """One read has been parsed."""
        ...

    def read_ended(self, error: str) -> None:
        """Nothing more can be read: EOF, or an error."""
        ...

    def write_failed(self, error: str) -> None:
        """Nothing more can be written; bytes that were sent to us may still be read."""
        ...

    def writable(self) -> None:
        """The write buffer is below its limit again."""
        ...


class SocketWire:
    """A connected non-blocking socket with its write buffer."""

    def __init__(self, connection: socket.socket, events: SocketEvents) -> None:
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            _set_tcp_options(connection)
        self._loop = asyncio.get_running_loop()
        self._socket, self._events = connection, events
        self._reader: ReadBuffer | None = None
        self._unsent: deque[memoryview] = deque()
        self._ends_after_unsent = False
        self.fd = connection.fileno()
        """The socket's descriptor; negative once it is released."""
        self.unsent_bytes = 0
        """How much the kernel has not taken yet."""
        self.is_reading = False
        self.is_broken = False

    def read_on(self, reader: ReadBuffer | None = None) -> None:
        """Start reading into this buffer, or into the previous one."""
        self._reader = reader or self._reader
        if self.fd >= 0 and not self.is_reading:
            self._loop.add_reader(self._socket, self._readable)
            self.is_reading = True

    def pause(self) -> None:
        """Stop reading until `read_on`."""
        if self.is_reading:
            self._loop.remove_reader(self._socket)
            self.is_reading = False

    def discard(self) -> None:
        """Read and discard, so that our last frames arrive (closing with unread data sends RST)."""
        self._reader = None
        self.read_on()

    def push(self, *parts: bytes | memoryview) -> None:
        """Write parts in order with one system call; what the kernel does not take is buffered
        uncopied.
        """
        if self._unsent:
            self._keep(parts)
        elif self.fd >= 0 and not self.is_broken:
            sent = self._send(parts)
            if sent is not None and sent < sum(map(len, parts)):
                self._keep(_after(parts, sent))

    def end_writing(self) -> None:
        """Shut down the write side after the buffer is sent."""
        self._ends_after_unsent = True
        if not self._unsent and self.fd >= 0:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.is_broken = True  # it has gone already

    def release(self) -> None:
        """Close the socket and drop the buffer; idempotent."""
        if self.fd >= 0:
            self.pause()
            self._forget()
            self._socket.close()
            self.fd = -1

    def _readable(self) -> None:
        try:
            if self._reader is None:
                count = len(self._socket.recv(READ_BYTES))
            else:
                count = self._socket.recv_into(self._reader.get_buffer(-1)[:READ_BYTES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.pause()
            self._events.read_ended(str(error.strerror).lower())
            return
        if count == 0:
            self.pause()
            self._events.read_ended("")
        elif self._reader is not None:
            self._reader.buffer_updated(count)
            self._events.read_done()

    def _writable(self) -> None:
        sent = self._send(tuple(islice(self._unsent, _PARTS_AT_ONCE)))
        if sent is not None:
            self._took(sent)
        if not self._unsent and self._ends_after_unsent:
            self.end_writing()
        if self.unsent_bytes < UNSENT_BYTES_MAX:
            self._events.writable()

    def _send(self, parts: Sequence[bytes | memoryview]) -> int | None:
        """Write to the socket; returns the bytes taken, None if the connection is broken."""
        try:
            if len(parts) == 1:
                return self._socket.send(parts[0])
            if len(parts) > _PARTS_AT_ONCE:
                parts = parts[:_PARTS_AT_ONCE]
            return self._socket.sendmsg(parts)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.is_broken = True
            self._forget()
            # Deferred: the sender up the stack must not find the stream released.
            self._loop.call_soon(self._events.write_failed, str(error.strerror).lower())
            return None

    def _took(self, sent: int) -> None:
        """Remove sent bytes from the buffer."""
        self.unsent_bytes -= sent
        while self._unsent and sent >= len(self._unsent[0]):
            sent -= len(self._unsent.popleft())
        if sent:
            self._unsent[0] = self._unsent[0][sent:]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _keep(self, parts: Iterable[bytes | memoryview]) -> None:
        had_unsent = bool(self._unsent)
        for part in parts:
            if part:
                self._unsent.append(memoryview(part))
                self.unsent_bytes += len(part)
        if self._unsent and not had_unsent:
            self._loop.add_writer(self._socket, self._writable)

    def _forget(self) -> None:
        if self._unsent:
            self._loop.remove_writer(self._socket)
            self._unsent.clear()
            self.unsent_bytes = 0


def _set_tcp_options(connection: socket.socket) -> None:
    """Set TCP_NODELAY and a small unsent buffer; choose congestion control within one machine."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        # What a slow reader has not taken waits with us, where it is counted.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
    if hasattr(socket, "TCP_CONGESTION"):
        # They are gone already, or this system does not let us choose.
        with suppress(OSError):
            # Within one machine there is no network that one could be too fast for. Many systems
            # measure and pace all the same (BBR), a fifth of what it costs to send output.
            if connection.getsockname()[0] == connection.getpeername()[0]:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)


def _after(parts: Iterable[bytes | memoryview], count: int) -> Iterable[bytes | memoryview]:
    """Yield what follows the first `count` bytes of the parts."""
    for part in parts:
        if count < len(part):
            yield memoryview(part)[count:] if count else part
        count = max(0, count - len(part))


BACKLOG = 1024

# A family, and an address in its form.
_Place = tuple[int, tuple[str | int | bytes, ...]]

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


async def connect_tcp(address: TcpAddress) -> socket.socket:
    """Connect to the first address of a host that accepts; raises `SocketRefused`."""
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


async def bind_tcp(address: TcpAddress, *, has_token: bool) -> socket.socket:
    """Listen at the first address of a host; raises `ListenerUnprotected` off loopback without a
    token.
    """
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
    """Resolve a host; numeric addresses are parsed without the resolver, which needs a thread."""
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
    """Return the error text of the system; the event loop overwrites it for refused connections."""
    is_lookup = isinstance(error, socket.gaierror) or error.errno is None
    return str(error.strerror if is_lookup else os.strerror(error.errno or 0)).lower()


class HeldWrites:
    """Transport that picows writes to: holds its bytes until they are flushed or discarded."""

    def __init__(self, wire: SocketWire, given_up: Callable[[], None]) -> None:
        self._wire, self._given_up = wire, given_up
        self._held: list[bytes] = []
        self.writes_directly = False

    def flush(self) -> None:
        """Write the held bytes."""
        if self._held:
            held, self._held = self._held, []
            self._wire.push(b"".join(held))

    def discard_held(self) -> None:
        """Drop the held bytes."""
        if self._held:
            self._held = []

    # Methods below are the interface that picows expects of a transport.

    def get_write_buffer_size(self) -> int:
        """Return zero while picows may write straight to the socket."""
        return self._wire.unsent_bytes if self.writes_directly else 1

    def write(self, data: bytes) -> None:
        """Write what the kernel did not take from picows, or hold it."""
        if self.writes_directly:
            self._wire.push(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        """Report that picows is done: it has refused a handshake, or aborted."""
        self._given_up()

    abort = close

    def get_extra_info(self, name: str) -> _Options | None:
        """Return a restricted socket for `socket`, None for everything else."""
        return _Options(self._wire.fd) if name == "socket" else None


class _Options:
    """A socket whose options picows can neither read nor set: TCP options fail on Unix sockets."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def setsockopt(self, *_option: int) -> None:
        """Leave it as it is."""

    def getsockopt(self, *_option: int) -> int:
        return 0
