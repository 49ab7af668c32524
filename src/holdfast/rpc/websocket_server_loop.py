"""Accept WebSockets from whoever may come in, whatever all others do."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field

from holdfast.rpc.core.websocket_admission import Policy, Request, Verdict, judge
from holdfast.rpc.failures import ConnectionClosed
from holdfast.rpc.socket_place import is_trusted, peer_uid
from holdfast.rpc.websocket_codec_loop import server_codec
from holdfast.rpc.websocket_stream_loop import WebSocketLimits, WebSocketStream

_ACCEPTED_AT_ONCE = 64
_NO_ROOM = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """How many may be connected, how many may be about to, for how long, and what each may do."""

    connections_max: int = 64
    handshakes_max: int = 256
    handshake_longest: float = 5.0
    connection: WebSocketLimits = field(default_factory=WebSocketLimits)


class Door:
    """Accepts sockets, answers their requests, and keeps those that were let in until fetched.

    Whoever stands there without asking is put out by those who come later, so that no number of
    sockets keeps anyone from entering.
    """

    def __init__(self, listener: socket.socket, *, policy: Policy, limits: ServerLimits) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._policy, self._limits = policy, limits
        self._asking: dict[WebSocketStream, None] = {}  # in the order in which they came
        self._inside: dict[WebSocketStream, None] = {}
        self._unfetched: list[WebSocketStream] = []
        self._arrival = asyncio.Event()
        self._watch()

    @property
    def is_open(self) -> bool:
        """Whether anyone can still come."""
        return self._listener.fileno() >= 0

    @property
    def is_quiet(self) -> bool:
        """Whether nobody is inside or asks to come in."""
        return not (self._asking or self._inside or self._unfetched)

    async def fetch(self) -> WebSocketStream:
        """Wait for the next who was let in; raises `ConnectionClosed` once the door is closed."""
        while True:
            while self._unfetched:
                stream = self._unfetched.pop(0)
                if stream.failure is None:
                    return stream
                stream.release()
            if not self.is_open:
                raise ConnectionClosed(reason="closed by us")
            self._arrival.clear()
            await self._arrival.wait()

    def close(self) -> None:
        """Listen no more, and put out whoever was not fetched; may be called again."""
        if self.is_open:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            for stream in (*self._asking, *self._unfetched):
                stream.release()
            self._arrival.set()

    def leave(self) -> socket.socket:
        """The socket, at which whoever comes now waits for somebody else; the door is closed."""
        self._loop.remove_reader(self._listener)
        left = socket.socket(fileno=self._listener.detach())
        self._arrival.set()
        return left

    def _watch(self) -> None:
        if self.is_open:
            self._loop.add_reader(self._listener, self._come)

    def _come(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection = self._listener.accept()[0]
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is free: whoever waits is not lost, only late
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_NO_ROOM, self._watch)
                return
            if connection.family == socket.AF_UNIX and not is_trusted(peer_uid(connection)):
                connection.close()
            else:
                self._ask(connection)

    def _ask(self, connection: socket.socket) -> None:
        """Hear what a socket wants, for as long as not too many come after it."""
        limits = self._limits.connection
        stream = WebSocketStream(connection, limits, lambda: self._settled(stream))
        self._asking[stream] = None
        if len(self._asking) > self._limits.handshakes_max:
            next(iter(self._asking)).release()
        codec = server_codec(stream, judge=self._judge, limits=limits)
        stream.start(codec, handshake_longest=self._limits.handshake_longest)

    def _judge(self, request: Request) -> Verdict:
        has_room = len(self._inside) < self._limits.connections_max
        return judge(request, self._policy, has_room=has_room)

    def _settled(self, stream: WebSocketStream) -> None:
        """Take note that somebody is inside, or gone."""
        if stream.released.is_set():
            self._asking.pop(stream, None)
            self._inside.pop(stream, None)
        elif stream.outbox is not None:
            self._asking.pop(stream, None)
            self._inside[stream] = None
            self._unfetched.append(stream)
            self._arrival.set()
