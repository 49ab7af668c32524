"""Messages that must leave although whoever wrote them cannot wait."""

from __future__ import annotations

from contextlib import suppress

import anyio

from holdfast.failures import Failure
from holdfast.rpc.ports import Transport

_WAITING_MAX = 1000


class Outbox:
    """Sends what the reader itself answers (pings, refusals), in order and one batch at a time.

    The reader never waits for a slow peer, or two peers that answer each other could stop each
    other. It only stops reading from a peer that asks a thousand times without reading once.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: list[bytes] = []
        self._stirred = anyio.Event()
        self._room = anyio.Event()

    def put(self, message: bytes) -> None:
        """Send it now, or as soon as the other side reads."""
        with suppress(Failure):  # an ended transport tells its reader, and takes nothing more
            if self._waiting or not self._transport.offer([message]):
                self._waiting.append(message)
                self._stirred.set()

    async def has_room(self) -> None:
        """Wait until not too much is waiting."""
        while len(self._waiting) > _WAITING_MAX:
            self._room = anyio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Send until the transport ends; its reader reports that end."""
        try:
            while True:
                await self._stirred.wait()
                self._stirred = anyio.Event()
                batch, self._waiting = self._waiting, []
                if batch:
                    await self._transport.send(batch)
                self._room.set()
        except Failure:
            self._waiting.clear()
            self._room.set()
