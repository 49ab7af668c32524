"""Write messages, a line each, to a file descriptor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from copy import copy

from holdfast.failures import Failure
from holdfast.rpc.core.framing import join

UNSENT_BYTES_MAX = 256 * 2**10


class LineWriter:
    """Hands messages straight to the kernel, and makes senders wait while that is full."""

    def __init__(self, fd: int, stopped: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = stopped
        self._unsent = bytearray()
        self._unyielded_bytes = 0
        self._senders: list[asyncio.Future[None]] = []
        self._failure: Failure | None = None
        self.fd = fd
        self.error = ""
        os.set_blocking(fd, False)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over whole, or, when cancelled or ended while waiting, not at all."""
        await self._room()
        self.offer(messages)
        if self.error:
            await self._room()  # until it is known why
        # Whoever sends without end to one who reads as fast must not starve all others.
        if self._unyielded_bytes > UNSENT_BYTES_MAX:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over whole if there is room for them, and say whether there was."""
        if self._failure is not None:
            raise copy(self._failure)
        if not self._has_room():
            return False
        data = join(messages)
        self._unyielded_bytes += len(data)
        self._write(data)
        return True

    async def flushed(self) -> None:
        """Wait until all that was sent has left, or never will."""
        while self._unsent:
            await self._turn()

    def refuse(self, failure: Failure) -> None:
        """Take no more messages; those already taken are still sent."""
        self._failure = failure
        self._wake()

    def end(self, failure: Failure) -> None:
        """Take no more messages, and drop those that could not be sent."""
        self._drop()
        self.refuse(failure)

    def close(self) -> None:
        """Let the other side read our end; may be called again."""
        self._drop()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def _write(self, data: bytes) -> None:
        if self._unsent:
            self._unsent += data
            return
        sent = self._push(data)
        if sent < len(data):
            self._unsent += memoryview(data)[sent:]
            self._loop.add_writer(self.fd, self._writable)

    def _writable(self) -> None:
        sent = self._push(self._unsent)
        if sent == len(self._unsent):
            self._drop()
        else:
            del self._unsent[:sent]
        if len(self._unsent) < UNSENT_BYTES_MAX:
            self._wake()

    def _push(self, data: bytes | bytearray) -> int:
        """Give the kernel what it takes now; a side that is gone takes everything."""
        try:
            return os.write(self.fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self.error = str(error.strerror)
        self._stopped()
        return len(data)

    def _drop(self) -> None:
        if self._unsent:
            self._loop.remove_writer(self.fd)
            self._unsent.clear()
        self._wake()

    def _has_room(self) -> bool:
        return not self.error and len(self._unsent) < UNSENT_BYTES_MAX

    async def _room(self) -> None:
        while self._failure is None and not self._has_room():
            await self._turn()
        if self._failure is not None:
            raise copy(self._failure)

    async def _turn(self) -> None:
        turn = self._loop.create_future()
        self._senders.append(turn)
        await turn

    def _wake(self) -> None:
        for turn in self._senders:
            if not turn.done():
                turn.set_result(None)
        self._senders.clear()
