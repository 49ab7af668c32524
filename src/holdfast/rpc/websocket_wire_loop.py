"""Move the bytes of a WebSocket between a socket and picows, in bounded memory."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Protocol

READ_BYTES = 256 * 2**10
UNSENT_BYTES_MAX = 256 * 2**10

_PARTS_AT_ONCE = 512  # of one call: the kernel takes twice as many
_UNPACED = b"reno"  # the way to send that every system has and lets everybody choose


class Reader(Protocol):
    """Gives memory to read into, and looks at what was read."""

    def get_buffer(self, size_hint: int, /) -> memoryview:
        """Where the next bytes go."""
        ...

    def buffer_updated(self, nbytes: int, /) -> None:
        """So many have come."""
        ...


class Ear(Protocol):
    """Who must know what happens on a wire."""

    def took(self) -> None:
        """One read has been looked at."""
        ...

    def ended(self, error: str) -> None:
        """Nothing more can be read."""
        ...

    def broke(self, error: str) -> None:
        """Nothing more can be written; what was sent to us may still be read."""
        ...

    def flowed(self) -> None:
        """There is room again for what we have to say."""
        ...


class Wire:
    """A connected socket, and what has not left yet."""

    def __init__(self, connection: socket.socket, ear: Ear) -> None:
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            _hasten(connection)
        self._loop = asyncio.get_running_loop()
        self._socket, self._ear = connection, ear
        self._reader: Reader | None = None
        self._unsent: deque[memoryview] = deque()
        self._ends_after_unsent = False
        self.fd = connection.fileno()
        """The socket's descriptor; negative once it is released."""
        self.unsent_bytes = 0
        """How much the kernel has not taken yet."""
        self.is_reading = False
        self.is_broken = False

    def read_on(self, reader: Reader | None = None) -> None:
        """Read from now on: for this reader, or for the one of before."""
        self._reader = reader or self._reader
        if self.fd >= 0 and not self.is_reading:
            self._loop.add_reader(self._socket, self._readable)
            self.is_reading = True

    def pause(self) -> None:
        """Read no more for now."""
        if self.is_reading:
            self._loop.remove_reader(self._socket)
            self.is_reading = False

    def discard(self) -> None:
        """Throw away from now on what comes, so that our own last words arrive."""
        self._reader = None
        self.read_on()

    def push(self, *parts: bytes | memoryview) -> None:
        """Write parts at once, in order; what the kernel does not take is kept, not copied."""
        if self._unsent:
            self._keep(parts)
        elif self.fd >= 0 and not self.is_broken:
            sent = self._send(parts)
            if sent is not None and sent < sum(map(len, parts)):
                self._keep(_after(parts, sent))

    def end_writing(self) -> None:
        """Let the other side read our end, after all that was written."""
        self._ends_after_unsent = True
        if not self._unsent and self.fd >= 0:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.is_broken = True  # it has gone already

    def release(self) -> None:
        """Close the socket and forget what was not sent; may be called again."""
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
            self._ear.ended(str(error.strerror).lower())
            return
        if count == 0:
            self.pause()
            self._ear.ended("")
        elif self._reader is not None:
            self._reader.buffer_updated(count)
            self._ear.took()

    def _writable(self) -> None:
        sent = self._send(tuple(islice(self._unsent, _PARTS_AT_ONCE)))
        if sent is not None:
            self._took(sent)
        if not self._unsent and self._ends_after_unsent:
            self.end_writing()
        if self.unsent_bytes < UNSENT_BYTES_MAX:
            self._ear.flowed()

    def _send(self, parts: Sequence[bytes | memoryview]) -> int | None:
        """Give the kernel what it takes now; None, with nothing left, if the other side is gone."""
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
            # Not now: whoever is sending must not find the ground gone.
            self._loop.call_soon(self._ear.broke, str(error.strerror).lower())
            return None

    def _took(self, sent: int) -> None:
        """Take note that so much of what was kept has left."""
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


def _hasten(connection: socket.socket) -> None:
    """Let a connection of TCP send at once what there is, and hold back little."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        # What a slow reader has not taken waits with us, where it is counted.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
    if hasattr(socket, "TCP_CONGESTION"):
        with suppress(OSError):  # they are gone already, or this system does not let us choose
            # Within one machine there is no network that one could be too fast for. Many systems
            # measure and pace all the same (BBR), a fifth of what it costs to send output.
            if connection.getsockname()[0] == connection.getpeername()[0]:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _UNPACED)


def _after(parts: Iterable[bytes | memoryview], count: int) -> Iterable[bytes | memoryview]:
    """What follows so many bytes of these parts."""
    for part in parts:
        if count < len(part):
            yield memoryview(part)[count:] if count else part
        count = max(0, count - len(part))
