"""A stream of messages over a WebSocket, and the reason when it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from holdfast.failures import Failure
from holdfast.rpc.core.websocket_ending import NORMAL, of_close, of_violation
from holdfast.rpc.core.websocket_frames import (
    BINARY,
    CONTINUATION,
    PROTOCOL_BROKEN,
    TEXT,
    Assembly,
    Violation,
)
from holdfast.rpc.core.websocket_pulse import Pulse, Sign, Watch, look
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.websocket_inbox_loop import Inbox
from holdfast.rpc.websocket_mouth_loop import Mouth
from holdfast.rpc.websocket_outbox_loop import Outbox
from holdfast.rpc.websocket_wire_loop import Reader, Wire

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
    """How much one message and one frame may hold, and how long the other side may be silent."""

    message_bytes_max: int = MESSAGE_BYTES_MAX
    frame_bytes_max: int = FRAME_BYTES_MAX
    pulse: Pulse = field(default_factory=Pulse)


class Codec(Reader, Protocol):
    """What we ask of picows: to speak through our mouth, and to say how the handshake went."""

    def connection_made(self, transport: Mouth, /) -> None:
        """Begin; a client asks for a WebSocket."""
        ...

    async def wait_until_handshake_complete(self) -> None:
        """Wait for its end; raise what went wrong with it."""
        ...


class WebSocketStream(WSListener):
    """Carries messages both ways until it ends, in bounded memory, and says why it ended.

    Owns the socket. All work is done by callbacks of the loop and by those who call: there is no
    task that could leak. It is open once `outbox` is there; `settled` is called when it is, when
    it never will be, and when the socket is let go of, which it does by itself soon after its end.
    """

    def __init__(
        self, connection: socket.socket, limits: WebSocketLimits, settled: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits, self._settled = limits, settled
        self._wire = Wire(connection, self)
        self._mouth = Mouth(self._wire, self._given_up)
        self._assembly = Assembly(message_bytes_max=limits.message_bytes_max)
        self._websocket: WSTransport | None = None
        self._is_client = False
        self._timer: asyncio.TimerHandle | None = None
        self._watch, self._has_heard = Watch(), False
        self._awaits_goodbye = False
        self.inbox = Inbox(self._read_on)
        self.outbox: Outbox | None = None
        self.failure: Failure | None = None
        self.guest = ""  # whose token was shown; nobody's, if it is our own
        self.released = asyncio.Event()

    def start(self, codec: Codec, *, handshake_longest: float) -> None:
        """Read what comes; without a handshake in time it ends."""
        self._arm(handshake_longest, self.release)
        codec.connection_made(self._mouth)
        self._mouth.let_go()
        self._wire.read_on(codec)

    def close(self) -> None:
        """Say goodbye and wait no longer than a moment for theirs; what they say is forgotten."""
        self.inbox.discard()
        if self.outbox is None:
            self.release()
        elif self.failure is None:
            self.outbox.close(NORMAL)
            self._end(ConnectionClosed(reason="closed by us"))
            self._awaits_goodbye = True
            self._arm(CLOSE_LONGEST, self.release)
            self._wire.read_on()  # for their goodbye

    def release(self) -> None:
        """Let go of the socket at once; may be called again."""
        self._end(ConnectionLost(reason="no handshake in time"))
        if self._timer is not None:
            self._timer.cancel()
        self._wire.release()
        self.released.set()
        self._settled()

    # What picows tells us.

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Open: messages may be sent and received."""
        self._mouth.let_go()  # the answer to the handshake
        self._websocket = transport
        self._is_client = transport.is_client_side
        self.outbox = Outbox(self._wire, self._mouth, transport)
        self._arm(self._limits.pulse.tick, self._tick)
        self._settled()

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002  # picows says so
        """Take one frame; after the end only a goodbye still counts."""
        opcode = _DATA.get(frame.msg_type)
        reserved = frame.rsv1 or frame.rsv2 or frame.rsv3
        if opcode is None:
            self._control(frame, reserved=reserved)
        elif self.failure is None:
            payload = frame.get_payload_as_bytes()
            message = self._assembly.take(opcode, payload, is_last=frame.fin, reserved=reserved)
            if message is not None:
                self.inbox.put(message)
            elif self._assembly.violation is not None:
                self._refuse(self._assembly.violation)

    # What the wire tells us.

    def took(self) -> None:
        """Hand on what one read brought, and read no more while too much is unread."""
        self._has_heard = True
        self._mouth.take_back()  # a goodbye that may be out of turn: we say our own
        self.inbox.wake()
        if self.failure is not None or self._websocket is None:
            return
        if self._websocket.is_close_frame_sent:  # picows found a rule broken
            said = self._websocket.close_handshake.sent
            assert said is not None and said.code is not WSCloseCode.INTERNAL_ERROR, "our own bug"
            self._refuse(Violation(said.code.value, said.reason))
        elif self.inbox.is_full and not self._wire.is_broken:
            self._wire.pause()

    def ended(self, error: str) -> None:
        """End: nothing more will come."""
        reason = error or "the other side hung up without a word"
        self._end(ConnectionLost(reason=reason))
        self.release()

    def broke(self, error: str) -> None:
        """Read all that was sent to us before it broke, which is little; then end."""
        if self.failure is None:
            self._wire.read_on()
            self._arm(_VERDICT_WAIT, lambda: self.ended(error))

    def flowed(self) -> None:
        """Let those who wait for room say what they have to say."""
        if self.outbox is not None:
            self.outbox.flowed()

    def _given_up(self) -> None:
        """Wind down: picows has refused the handshake, or repeats that it wants no more."""
        if self.outbox is None and not self.released.is_set():
            self._mouth.let_go()  # the refusal
            self._wind_down(ends_writing=True)
            self._settled()

    def _control(self, frame: WSFrame, *, reserved: bool) -> None:
        assert self.outbox is not None
        if self.failure is not None:
            if frame.msg_type is _CLOSE and self._awaits_goodbye:
                self._awaits_goodbye = False
                self._wind_down(ends_writing=not self._is_client)
        elif reserved:
            self._refuse(Violation(PROTOCOL_BROKEN, "a reserved bit is set"))
        elif frame.msg_type is _PING:
            self.outbox.pong(frame.get_payload_as_bytes())
        elif frame.msg_type is _CLOSE:
            failure, code = of_close(frame.get_payload_as_bytes())
            self.outbox.close(code)
            self._end(failure)
            self._wind_down(ends_writing=not self._is_client)

    def _refuse(self, violation: Violation) -> None:
        """End it because of what they did, and tell them."""
        assert self.outbox is not None
        self.outbox.close(violation.code, violation.reason)
        self._end(of_violation(violation, bytes_max=self._limits.message_bytes_max))
        self._wind_down(ends_writing=True)

    def _end(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure
            self.inbox.end(failure)
            if self.outbox is not None:
                self.outbox.refuse(failure)

    def _wind_down(self, *, ends_writing: bool) -> None:
        """Let our last words arrive: whoever closes a socket with unread data destroys them.

        By the rules a server hangs up first; a client waits for that.
        """
        self._arm(CLOSE_LONGEST, self.release)
        self._wire.discard()
        if ends_writing:
            self._wire.end_writing()

    def _tick(self) -> None:
        """Look for signs of life; what we did not read cannot be called silence."""
        assert self.outbox is not None
        heard = self._has_heard or not self._wire.is_reading
        self._watch, sign = look(self._watch, self._limits.pulse, heard=heard)
        self._has_heard = False
        if sign is Sign.GIVE_UP:
            self.ended("no sign of life")
            return
        if sign is Sign.PING:
            self.outbox.ping()
        self._arm(self._limits.pulse.tick, self._tick)

    def _read_on(self) -> None:
        if self.failure is None:
            self._wire.read_on()

    def _arm(self, wait: float, then: Callable[[], None]) -> None:
        """Set the one timer: for the handshake, then the pulse, then the end."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(wait, then)
