"""State of one WebSocket connection, and the server side that admits connections.

Theory of operation:

    start ──▶ handshake ──accepted──▶ open ──┬─ close(): close frame sent ──▶ awaiting theirs ─┐
                 │                           ├─ their close frame: reply ──────────────────────┤
              refused or timeout             ├─ violation: close frame with its code ──────────┤
                 │                           └─ EOF, error, silence ─▶ released                ▼
                 └──────────────▶ winding down: discard input, at most CLOSE_LONGEST ─▶ released

Invariants: `failure` is set once, at the first end, and every caller gets a copy of it; messages
that were complete before the end are still received; no frame is sent after a close frame; the
write buffer is bounded by UNSENT_BYTES_MAX plus one batch, the read queue by UNREAD_BYTES_MAX plus
one read. There is one timer, for the handshake, then for pings, then for the end; and no task, so
that nothing can leak.

Caveats: picows parses frames, masks client frames and does the HTTP handshake. It sends close
frames of its own on a violation, which are discarded and sent again here in order. A socket closed
with unread input sends RST, which destroys our last frames in flight: hence the winding down. By
RFC 6455 the server closes TCP first, and a client waits for that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

from picows import (
    WSAutoPingStrategy,
    WSCloseCode,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)
from picows import picows as _picows

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.transports.unix import is_trusted, peer_uid
from holdfast.rpc.transports.websocket_protocol import (
    ADMITTED,
    BINARY,
    CLOSE,
    CONTINUATION,
    NORMAL,
    PING,
    PONG,
    PROTOCOL_BROKEN,
    READY,
    TEXT,
    TOKEN_REQUIRED,
    AdmissionPolicy,
    MessageAssembler,
    PingAction,
    PingPolicy,
    PingState,
    ProtocolViolation,
    Text,
    UpgradeReply,
    UpgradeRequest,
    close_failure,
    close_payload,
    control_frame,
    joined,
    ping_step,
    text_parts,
    upgrade_reply,
    violation_failure,
)
from holdfast.rpc.transports.websocket_wire_loop import (
    READ_BYTES,
    UNSENT_BYTES_MAX,
    HeldWrites,
    ReadBuffer,
    SocketWire,
)

# Some clients hang up on a frame of more than 16 MiB.
FRAGMENT_BYTES = 8 * 2**20

# A busy sender yields after so many bytes, which take well under a millisecond.
_YIELD_BYTES = 2**20
# Of a message: to copy so much costs less than to gather it.
_COPIED_BYTES_MAX = 8 * 2**10
_TEXT, _CONTINUATION = WSMsgType.TEXT, WSMsgType.CONTINUATION


class FrameWriter:
    """Encodes messages and control frames to the socket; senders wait while its buffer is full."""

    def __init__(self, wire: SocketWire, held_writes: HeldWrites, websocket: WSTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire, self._held_writes, self._websocket = wire, held_writes, websocket
        self._is_client = websocket.is_client_side
        self._senders: list[asyncio.Future[None]] = []
        self._unyielded_bytes = 0
        self._owed_pong: bytes | None = None
        self._failure: Failure | None = None

    async def send(self, messages: Sequence[Text]) -> None:
        """Send all messages, or none if the caller is cancelled or the stream ends while it
        waits.
        """
        while not self.offer(messages):
            turn = self._loop.create_future()
            self._senders.append(turn)
            await turn
        # A sender whose peer reads as fast as it sends never suspends, and would starve other
        # tasks.
        if self._unyielded_bytes > _YIELD_BYTES:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)

    def offer(self, messages: Sequence[Text]) -> bool:
        """Send all messages if the buffer has room; returns whether it did."""
        if self._failure is not None:
            raise copy(self._failure)
        if self._wire.is_broken or self._wire.unsent_bytes >= UNSENT_BYTES_MAX:
            return False
        self._write(messages)
        return True

    def ping(self) -> None:
        """Send a ping, which is a keepalive too."""
        self._control(PING, b"")

    def pong(self, payload: bytes) -> None:
        """Reply to a ping; while the buffer is full only the latest ping is remembered."""
        if self._wire.unsent_bytes < UNSENT_BYTES_MAX:
            self._control(PONG, payload)
        else:
            self._owed_pong = payload

    def close(self, code: int, reason: str = "") -> None:
        """Send a close frame: no frame may follow."""
        self._control(CLOSE, close_payload(code, reason))

    def refuse(self, failure: Failure) -> None:
        """Accept no more messages; the buffer is still sent."""
        self._failure = failure
        self._wake()

    def writable(self) -> None:
        """Send a delayed pong, and wake the senders."""
        if self._owed_pong is not None:
            payload, self._owed_pong = self._owed_pong, None
            self.pong(payload)
        self._wake()

    def _control(self, opcode: int, payload: bytes) -> None:
        """Encode a control frame here: picows sends nothing after it has found a violation."""
        if self._failure is None:
            mask = os.urandom(4) if self._is_client else b""
            self._wire.push(control_frame(opcode, payload, mask=mask))

    def _write(self, messages: Sequence[Text]) -> None:
        """Write messages with as few system calls as possible; large ones are not copied."""
        if self._is_client:
            self._write_masked([joined(message) for message in messages])
            return
        parts = text_parts(messages, frame_bytes_max=FRAGMENT_BYTES)
        size = sum(map(len, parts))
        self._unyielded_bytes += size
        if size <= _COPIED_BYTES_MAX * len(messages):
            self._wire.push(b"".join(parts))
        else:
            self._wire.push(*parts)

    def _write_masked(self, messages: Sequence[bytes]) -> None:
        """Let picows encode client frames: masking needs a copy anyway."""
        self._unyielded_bytes += sum(map(len, messages))
        self._held_writes.writes_directly = len(messages) == 1
        for message in messages:
            if len(message) <= FRAGMENT_BYTES:
                self._websocket.send(_TEXT, message)
                continue
            view, kind = memoryview(message), _TEXT
            for first in range(0, len(message), FRAGMENT_BYTES):
                last = first + FRAGMENT_BYTES
                self._websocket.send(kind, view[first:last], last >= len(message))
                kind = _CONTINUATION
        self._held_writes.writes_directly = False
        self._held_writes.flush()

    def _wake(self) -> None:
        for turn in self._senders:
            if not turn.done():
                turn.set_result(None)
        self._senders.clear()


UNREAD_BYTES_MAX = 2**20

# What keeping one costs besides its bytes: one that is empty is not free.
_MESSAGE_BYTES = 32


class ReadQueue:
    """Bounded queue of received messages for one receiving task."""

    def __init__(self, read_on: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_on = read_on
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._arrival: asyncio.Future[None] | None = None
        self._failure: Failure | None = None

    @property
    def is_full(self) -> bool:
        """Whether so much is unread that reading must pause."""
        return self._unread_bytes > UNREAD_BYTES_MAX

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages since the last call; raises the failure that ended the stream."""
        assert self._arrival is None, "one task receives"
        while not self._unread:
            if self._failure is not None:
                # Each caller gets a copy: one exception raised in several tasks would collect all
                # tracebacks.
                raise copy(self._failure)
            self._arrival = self._loop.create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        was_full = self.is_full
        messages, self._unread, self._unread_bytes = self._unread, [], 0
        if was_full:
            self._read_on()
        return messages

    def put(self, message: bytes) -> None:
        """Queue a message; `wake` wakes the receiver once per read."""
        self._unread.append(message)
        self._unread_bytes += len(message) + _MESSAGE_BYTES

    def wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def end(self, failure: Failure) -> None:
        """Raise this failure after all queued messages."""
        self._failure = failure
        self.wake()

    def discard(self) -> None:
        """Drop the queue: no task will receive it."""
        self._unread, self._unread_bytes = [], 0


MESSAGE_BYTES_MAX = 64 * 2**20
FRAME_BYTES_MAX = 16 * 2**20
CLOSE_LONGEST = 1.0

_VERDICT_WAIT = 0.5
_PING, _CLOSE = WSMsgType.PING, WSMsgType.CLOSE
_DATA = {
    WSMsgType.CONTINUATION: CONTINUATION,
    WSMsgType.TEXT: TEXT,
    WSMsgType.BINARY: BINARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketLimits:
    """Size limits for messages and frames, and the ping policy."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    frame_bytes_max: int = FRAME_BYTES_MAX
    pulse: PingPolicy = field(default_factory=PingPolicy)


class PicowsProtocol(ReadBuffer, Protocol):
    """The part of the picows protocol object that the stream uses."""

    def connection_made(self, transport: HeldWrites, /) -> None:
        """Begin; a client sends its upgrade request."""
        ...

    async def wait_until_handshake_complete(self) -> None:
        """Wait for the end of the handshake; raises its error."""
        ...


class WebSocketStream(WSListener):
    """One WebSocket connection, which owns its socket; see the module for its states.

    It is open once `writer` is set. `settled` is called when it opens, when the handshake fails,
    and when the socket is released.
    """

    def __init__(
        self, connection: socket.socket, limits: WebSocketLimits, settled: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits, self._settled = limits, settled
        self._wire = SocketWire(connection, self)
        self._held_writes = HeldWrites(self._wire, self._given_up)
        self._assembly = MessageAssembler(message_bytes_max=limits.message_bytes_max)
        self._websocket: WSTransport | None = None
        self._is_client = False
        self._timer: asyncio.TimerHandle | None = None
        self._watch, self._has_heard = PingState(), False
        self._awaits_close = False
        self.read_queue = ReadQueue(self._read_on)
        self.writer: FrameWriter | None = None
        self.failure: Failure | None = None
        # Name bound to the client's token; empty for the server's own token.
        self.guest = ""
        self.released = asyncio.Event()

    def start(self, codec: PicowsProtocol, *, handshake_longest: float) -> None:
        """Start the handshake, with a timeout in seconds."""
        self._arm(handshake_longest, self.release)
        codec.connection_made(self._held_writes)
        self._held_writes.flush()
        self._wire.read_on(codec)

    def close(self) -> None:
        """Start the close handshake with a timeout; later messages of the other side are
        dropped.
        """
        self.read_queue.discard()
        if self.writer is None:
            self.release()
        elif self.failure is None:
            self.writer.close(NORMAL)
            self._end(ConnectionClosed(reason="closed by us"))
            self._awaits_close = True
            self._arm(CLOSE_LONGEST, self.release)
            self._wire.read_on()  # for their goodbye

    def release(self) -> None:
        """Close the socket at once; idempotent."""
        self._end(ConnectionLost(reason="no handshake in time"))
        if self._timer is not None:
            self._timer.cancel()
        self._wire.release()
        self.released.set()
        self._settled()

    # Callbacks of picows.

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Open: messages may be sent and received."""
        # The answer to the handshake.
        self._held_writes.flush()
        self._websocket = transport
        self._is_client = transport.is_client_side
        self.writer = FrameWriter(self._wire, self._held_writes, transport)
        self._arm(self._limits.pulse.tick, self._tick)
        self._settled()

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002  # picows says so
        """Handle one frame; after the end only a close frame matters."""
        opcode = _DATA.get(frame.msg_type)
        reserved = frame.rsv1 or frame.rsv2 or frame.rsv3
        if opcode is None:
            self._control(frame, reserved=reserved)
        elif self.failure is None:
            payload = frame.get_payload_as_bytes()
            message = self._assembly.take(opcode, payload, is_last=frame.fin, reserved=reserved)
            if message is not None:
                self.read_queue.put(message)
            elif self._assembly.violation is not None:
                self._refuse(self._assembly.violation)

    # Callbacks of the socket (`SocketEvents`).

    def read_done(self) -> None:
        """Wake the receiver after one read, and pause reading while the queue is full."""
        self._has_heard = True
        # A goodbye that may be out of turn: we say our own.
        self._held_writes.discard_held()
        self.read_queue.wake()
        if self.failure is not None or self._websocket is None:
            return
        # Picows found a rule broken.
        if self._websocket.is_close_frame_sent:
            said = self._websocket.close_handshake.sent
            assert said is not None and said.code is not WSCloseCode.INTERNAL_ERROR, "our own bug"
            self._refuse(ProtocolViolation(said.code.value, said.reason))
        elif self.read_queue.is_full and not self._wire.is_broken:
            self._wire.pause()

    def read_ended(self, error: str) -> None:
        """End the stream: EOF or a read error."""
        reason = error or "the other side hung up without a word"
        self._end(ConnectionLost(reason=reason))
        self.release()

    def write_failed(self, error: str) -> None:
        """Read the rest of what was sent before the connection broke, then end."""
        if self.failure is None:
            self._wire.read_on()
            self._arm(_VERDICT_WAIT, lambda: self.read_ended(error))

    def writable(self) -> None:
        """Wake the senders."""
        if self.writer is not None:
            self.writer.writable()

    def _given_up(self) -> None:
        """Wind down: picows has refused the handshake, or aborted."""
        if self.writer is None and not self.released.is_set():
            self._held_writes.flush()  # the refusal
            self._wind_down(ends_writing=True)
            self._settled()

    def _control(self, frame: WSFrame, *, reserved: bool) -> None:
        assert self.writer is not None
        if self.failure is not None:
            if frame.msg_type is _CLOSE and self._awaits_close:
                self._awaits_close = False
                self._wind_down(ends_writing=not self._is_client)
        elif reserved:
            self._refuse(ProtocolViolation(PROTOCOL_BROKEN, "a reserved bit is set"))
        elif frame.msg_type is _PING:
            self.writer.pong(frame.get_payload_as_bytes())
        elif frame.msg_type is _CLOSE:
            failure, code = close_failure(frame.get_payload_as_bytes())
            self.writer.close(code)
            self._end(failure)
            self._wind_down(ends_writing=not self._is_client)

    def _refuse(self, violation: ProtocolViolation) -> None:
        """End the stream because of a violation, with its close code."""
        assert self.writer is not None
        self.writer.close(violation.code, violation.reason)
        self._end(violation_failure(violation, bytes_max=self._limits.message_bytes_max))
        self._wind_down(ends_writing=True)

    def _end(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure
            self.read_queue.end(failure)
            if self.writer is not None:
                self.writer.refuse(failure)

    def _wind_down(self, *, ends_writing: bool) -> None:
        """Discard input until the other side closes, so that our last frames are not destroyed
        by RST.
        """
        self._arm(CLOSE_LONGEST, self.release)
        self._wire.discard()
        if ends_writing:
            self._wire.end_writing()

    def _tick(self) -> None:
        """Poll for silence; while reading is paused, silence does not count."""
        assert self.writer is not None
        heard = self._has_heard or not self._wire.is_reading
        self._watch, sign = ping_step(self._watch, self._limits.pulse, heard=heard)
        self._has_heard = False
        if sign is PingAction.GIVE_UP:
            self.read_ended("no sign of life")
            return
        if sign is PingAction.PING:
            self.writer.ping()
        self._arm(self._limits.pulse.tick, self._tick)

    def _read_on(self) -> None:
        if self.failure is None:
            self._wire.read_on()

    def _arm(self, wait: float, then: Callable[[], None]) -> None:
        """Set the one timer: for the handshake, then for pings, then for the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait, then)


# picows logs every handshake, with the token in it, and every connection.
_mute = logging.Logger("picows", level=logging.CRITICAL + 1)


def client_codec(
    stream: WebSocketStream,
    *,
    host: str,
    path: str,
    headers: Mapping[str, str],
    limits: WebSocketLimits,
) -> PicowsProtocol:
    """Return a codec that requests an upgrade from the server `host`."""
    return _codec((host, path), lambda *_: stream, headers, limits)


def server_codec(
    stream: WebSocketStream,
    *,
    judge: Callable[[UpgradeRequest], UpgradeReply],
    limits: WebSocketLimits,
) -> PicowsProtocol:
    """Return a codec that replies to an upgrade request by `judge`, and opens the stream on 101."""

    def answer(request: WSUpgradeRequest) -> WebSocketStream | WSUpgradeResponseWithListener:
        verdict = judge(_read(request))
        if verdict.status == ADMITTED.status:
            stream.guest = verdict.guest
            return stream
        body = f"{verdict.reason}\n".encode()
        if verdict == READY:
            response = WSUpgradeResponse.create_ok_response(body)
        else:
            response = WSUpgradeResponse.create_error_response(verdict.status, body)
        if verdict == TOKEN_REQUIRED:
            response.headers["WWW-Authenticate"] = "Bearer"
        return WSUpgradeResponseWithListener(response, None)

    return _codec((None, None), answer, {}, limits)


def _read(request: WSUpgradeRequest) -> UpgradeRequest:
    headers = request.headers
    return UpgradeRequest(
        path=request.path.decode("latin-1"),
        hosts=tuple(headers.getall("Host", ())),
        origins=tuple(headers.getall("Origin", ())),
        authorizations=tuple(headers.getall("Authorization", ())),
    )


def _codec(
    target: tuple[str, str] | tuple[None, None],
    listener: Callable[..., object],
    headers: Mapping[str, str],
    limits: WebSocketLimits,
) -> PicowsProtocol:
    """Create the picows protocol. Deadlines, pings and pongs are ours; picows checks frame
    sizes.
    """
    made: PicowsProtocol = vars(_picows)["WSProtocol"](  # which its stubs leave out
        *target,
        target != (None, None),
        listener,
        _mute,
        True,
        None,
        False,
        None,
        None,
        WSAutoPingStrategy.PING_WHEN_IDLE,
        False,
        min(limits.frame_bytes_max, limits.message_bytes_max),
        headers,
        2 * READ_BYTES,
    )
    return made


_ACCEPTED_AT_ONCE = 64
_NO_ROOM = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of a server: connections, concurrent handshakes, handshake timeout in seconds."""

    connections_max: int = 64
    handshakes_max: int = 256
    handshake_longest: float = 5.0
    connection: WebSocketLimits = field(default_factory=WebSocketLimits)


class Admission:
    """Accepts sockets, does their handshakes, and queues open connections until `accept`.

    When there are too many handshakes the oldest is dropped, so that idle sockets cannot block new
    clients.
    """

    def __init__(
        self, listener: socket.socket, *, policy: AdmissionPolicy, limits: ServerLimits
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self._policy, self._limits = policy, limits
        # In the order in which they came.
        self._handshaking: dict[WebSocketStream, None] = {}
        self._connected: dict[WebSocketStream, None] = {}
        self._unaccepted: list[WebSocketStream] = []
        self._arrival = asyncio.Event()
        self._watch()

    @property
    def is_open(self) -> bool:
        """Whether the listener is open."""
        return self._listener.fileno() >= 0

    @property
    def is_quiet(self) -> bool:
        """Whether no client is connected or in its handshake."""
        return not (self._handshaking or self._connected or self._unaccepted)

    async def accept(self) -> WebSocketStream:
        """Wait for the next open connection; raises `ConnectionClosed` once the listener is
        closed.
        """
        while True:
            while self._unaccepted:
                stream = self._unaccepted.pop(0)
                if stream.failure is None:
                    return stream
                stream.release()
            if not self.is_open:
                raise ConnectionClosed(reason="closed by us")
            self._arrival.clear()
            await self._arrival.wait()

    def close(self) -> None:
        """Close the listener and every connection that was not accepted; idempotent."""
        if self.is_open:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            for stream in (*self._handshaking, *self._unaccepted):
                stream.release()
            self._arrival.set()

    def detach(self) -> socket.socket:
        """Stop accepting and return the listening socket; new clients wait in its backlog."""
        self._loop.remove_reader(self._listener)
        left = socket.socket(fileno=self._listener.detach())
        self._arrival.set()
        return left

    def _watch(self) -> None:
        if self.is_open:
            self._loop.add_reader(self._listener, self._accept_ready)

    def _accept_ready(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection = self._listener.accept()[0]
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # Out of descriptors (EMFILE): clients stay in the backlog until the retry.
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_NO_ROOM, self._watch)
                return
            if connection.family == socket.AF_UNIX and not is_trusted(peer_uid(connection)):
                connection.close()
            else:
                self._start_handshake(connection)

    def _start_handshake(self, connection: socket.socket) -> None:
        """Start the handshake of a socket; drops the oldest handshake if there are too many."""
        limits = self._limits.connection
        stream = WebSocketStream(connection, limits, lambda: self._settled(stream))
        self._handshaking[stream] = None
        if len(self._handshaking) > self._limits.handshakes_max:
            next(iter(self._handshaking)).release()
        codec = server_codec(stream, judge=self._judge, limits=limits)
        stream.start(codec, handshake_longest=self._limits.handshake_longest)

    def _judge(self, request: UpgradeRequest) -> UpgradeReply:
        has_room = len(self._connected) < self._limits.connections_max
        return upgrade_reply(request, self._policy, has_room=has_room)

    def _settled(self, stream: WebSocketStream) -> None:
        """Track a stream that has opened, or was released."""
        if stream.released.is_set():
            self._handshaking.pop(stream, None)
            self._connected.pop(stream, None)
        elif stream.writer is not None:
            self._handshaking.pop(stream, None)
            self._connected[stream] = None
            self._unaccepted.append(stream)
            self._arrival.set()
