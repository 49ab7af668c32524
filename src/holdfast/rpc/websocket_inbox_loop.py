"""Keep what a WebSocket brought until the one task that receives asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy

from holdfast.failures import Failure

UNREAD_BYTES_MAX = 2**20

_MESSAGE_BYTES = 32  # what keeping one costs besides its bytes: one that is empty is not free


class Inbox:
    """Hands on what was read, one batch per wake-up; says when no more should be read."""

    def __init__(self, read_on: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_on = read_on
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._arrival: asyncio.Future[None] | None = None
        self._failure: Failure | None = None

    @property
    def is_full(self) -> bool:
        """Whether so much is unread that the other side must wait."""
        return self._unread_bytes > UNREAD_BYTES_MAX

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that came since the last call; raise what ended the stream."""
        assert self._arrival is None, "one task receives"
        while not self._unread:
            if self._failure is not None:
                raise copy(self._failure)  # one exception in many hands collects their tracebacks
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
        """Keep a message; whoever waits is woken by `wake`, once for all that one read brought."""
        self._unread.append(message)
        self._unread_bytes += len(message) + _MESSAGE_BYTES

    def wake(self) -> None:
        """Let the one who waits look again."""
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def end(self, failure: Failure) -> None:
        """Raise this failure once all that was read has been received."""
        self._failure = failure
        self.wake()

    def discard(self) -> None:
        """Forget what was read: nobody will receive it."""
        self._unread, self._unread_bytes = [], 0
