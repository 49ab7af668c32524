"""Say messages over a WebSocket, and make senders wait while the other side is slow to read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from copy import copy

from picows import WSMsgType, WSTransport

from holdfast.failures import Failure
from holdfast.rpc.core.websocket_frames import (
    CLOSE,
    PING,
    PONG,
    Text,
    close_payload,
    control_frame,
    text_parts,
    whole,
)
from holdfast.rpc.websocket_mouth_loop import Mouth
from holdfast.rpc.websocket_wire_loop import UNSENT_BYTES_MAX, Wire

FRAGMENT_BYTES = 8 * 2**20  # some clients hang up on a frame of more than 16 MiB

_YIELD_BYTES = 2**20  # of those who send without end, each of which takes well under a millisecond
_COPIED_BYTES_MAX = 8 * 2**10  # of a message: to copy so much costs less than to gather it
_TEXT, _CONTINUATION = WSMsgType.TEXT, WSMsgType.CONTINUATION


class Outbox:
    """Hands messages straight to the kernel; what that does not take is bounded."""

    def __init__(self, wire: Wire, mouth: Mouth, websocket: WSTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._wire, self._mouth, self._websocket = wire, mouth, websocket
        self._is_client = websocket.is_client_side
        self._senders: list[asyncio.Future[None]] = []
        self._unyielded_bytes = 0
        self._owed_pong: bytes | None = None
        self._failure: Failure | None = None

    async def send(self, messages: Sequence[Text]) -> None:
        """Hand messages over whole, or, when cancelled or ended while waiting, not at all."""
        while not self.offer(messages):
            turn = self._loop.create_future()
            self._senders.append(turn)
            await turn
        # Whoever sends without end to one who reads as fast must not starve all others.
        if self._unyielded_bytes > _YIELD_BYTES:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)

    def offer(self, messages: Sequence[Text]) -> bool:
        """Hand messages over whole if there is room for them, and say whether there was."""
        if self._failure is not None:
            raise copy(self._failure)
        if self._wire.is_broken or self._wire.unsent_bytes >= UNSENT_BYTES_MAX:
            return False
        self._say(messages)
        return True

    def ping(self) -> None:
        """Ask for a sign of life, and give one."""
        self._control(PING, b"")

    def pong(self, payload: bytes) -> None:
        """Answer a ping; of many that one who does not read sends, only the latest is answered."""
        if self._wire.unsent_bytes < UNSENT_BYTES_MAX:
            self._control(PONG, payload)
        else:
            self._owed_pong = payload

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye: nothing may be said after it."""
        self._control(CLOSE, close_payload(code, reason))

    def refuse(self, failure: Failure) -> None:
        """Take no more messages; those already taken are still sent."""
        self._failure = failure
        self._wake()

    def flowed(self) -> None:
        """Let those who wait say what they have to say."""
        if self._owed_pong is not None:
            payload, self._owed_pong = self._owed_pong, None
            self.pong(payload)
        self._wake()

    def _control(self, opcode: int, payload: bytes) -> None:
        """Say it ourselves: picows says nothing more once it has found a rule broken."""
        if self._failure is None:
            mask = os.urandom(4) if self._is_client else b""
            self._wire.push(control_frame(opcode, payload, mask=mask))

    def _say(self, messages: Sequence[Text]) -> None:
        """Write them in as few calls as there can be; what is large is not copied."""
        if self._is_client:
            self._say_masked([whole(message) for message in messages])
            return
        parts = text_parts(messages, frame_bytes_max=FRAGMENT_BYTES)
        size = sum(map(len, parts))
        self._unyielded_bytes += size
        if size <= _COPIED_BYTES_MAX * len(messages):
            self._wire.push(b"".join(parts))
        else:
            self._wire.push(*parts)

    def _say_masked(self, messages: Sequence[bytes]) -> None:
        """Have picows write them: only a client masks what it says, which needs a copy anyway."""
        self._unyielded_bytes += sum(map(len, messages))
        self._mouth.is_free = len(messages) == 1
        for message in messages:
            if len(message) <= FRAGMENT_BYTES:
                self._websocket.send(_TEXT, message)
                continue
            view, kind = memoryview(message), _TEXT
            for first in range(0, len(message), FRAGMENT_BYTES):
                last = first + FRAGMENT_BYTES
                self._websocket.send(kind, view[first:last], last >= len(message))
                kind = _CONTINUATION
        self._mouth.is_free = False
        self._mouth.let_go()

    def _wake(self) -> None:
        for turn in self._senders:
            if not turn.done():
                turn.set_result(None)
        self._senders.clear()
