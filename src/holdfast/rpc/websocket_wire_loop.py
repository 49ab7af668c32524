"""Move the bytes of a WebSocket between a socket and picows, in bounded memory."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol

READ_BYTES = 256 * 2**10
UNSENT_BYTES_MAX = 256 * 2**10


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
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if connection.family != socket.AF_UNIX and hasattr(socket, "TCP_NOTSENT_LOWAT"):
            # What a slow reader has not taken waits with us, where it is counted.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
        self._loop = asyncio.get_running_loop()
        self._socket, self._ear = connection, ear
        self._reader: Reader | None = None
        self._unsent = bytearray()
        self._ends_after_unsent = False
        self.is_reading = False
        self.is_broken = False

    @property
    def fd(self) -> int:
        """The socket's descriptor; negative once it is released."""
        return self._socket.fileno()

    @property
    def unsent_bytes(self) -> int:
        """How much the kernel has not taken yet."""
        return len(self._unsent)

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

    def push(self, data: bytes) -> None:
        """Write at once, or keep what the kernel does not take."""
        if self._unsent:
            self._unsent += data
        elif self.fd >= 0 and not self.is_broken:
            sent = self._send(data)
            if sent < len(data):
                self._keep(memoryview(data)[sent:])

    def push_both(self, head: bytes, body: bytes | memoryview) -> None:
        """Write a head and a large body, which is not copied if the kernel takes it."""
        if self._unsent or self.is_broken:
            self.push(b"".join((head, body)))
            return
        try:
            sent = self._socket.sendmsg((head, body))
        except OSError:
            sent = 0  # whether it waits or is broken: writing again tells
        if sent < len(head):
            self.push(head[sent:])
            sent = len(head)
        rest = memoryview(body)[sent - len(head) :]
        if rest and not self.is_broken:
            self._keep(rest)

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
        sent = self._send(self._unsent)
        if sent == len(self._unsent):
            self._forget()
            if self._ends_after_unsent:
                self.end_writing()
        else:
            del self._unsent[:sent]
        if len(self._unsent) < UNSENT_BYTES_MAX:
            self._ear.flowed()

    def _send(self, data: bytes | bytearray) -> int:
        """Give the kernel what it takes now; a side that is gone takes everything."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.is_broken = True
            # Not now: whoever is sending must not find the ground gone.
            self._loop.call_soon(self._ear.broke, str(error.strerror).lower())
            return len(data)

    def _keep(self, rest: bytes | memoryview) -> None:
        if not self._unsent:
            self._loop.add_writer(self._socket, self._writable)
        self._unsent += rest

    def _forget(self) -> None:
        if self._unsent:
            self._loop.remove_writer(self._socket)
            self._unsent.clear()
