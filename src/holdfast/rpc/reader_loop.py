"""Read messages, a line each, from a file descriptor."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from copy import copy

from holdfast.failures import Failure
from holdfast.rpc.core.framing import Lines
from holdfast.rpc.core.tail import excerpt

READ_BYTES = 256 * 2**10
UNREAD_BYTES_MAX = 2**20


class LineReader:
    """Hands on what was read, one batch per wake-up, to the one task that receives.

    When too much waits to be received, reading stops and the other side comes to block.
    """

    def __init__(self, fd: int, lines: Lines, stopped: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = lines
        self._stopped = stopped
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._unfinished_bytes = 0
        # Kept: to have a large buffer made for each little answer would cost more than the answer.
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._arrival: asyncio.Future[None] | None = None
        self._discards = False
        self.fd = fd
        self.failure: Failure | None = None
        self.at_end = False
        self.error = ""
        self.is_reading = False
        self.bytes_read = 0
        os.set_blocking(fd, False)
        self.read_on()

    @property
    def has_unread(self) -> bool:
        """Whether messages came that nobody has received yet."""
        return bool(self._unread)

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that came since the last call; raise what ended the stream."""
        assert self._arrival is None, "one task receives"
        while not self._unread:
            if self.failure is not None:
                raise copy(self.failure)  # one exception in many hands collects their tracebacks
            self._arrival = self._loop.create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        messages, self._unread, self._unread_bytes = self._unread, [], 0
        if not self.is_reading:
            self.read_on()
        return messages

    def end(self, failure: Failure) -> None:
        """Read no more, and raise this failure once all that was read has been received."""
        self.failure = failure
        self.pause()
        self._wake()

    def discard(self, failure: Failure) -> None:
        """Raise this failure at once; go on reading so that the other side does not block."""
        self.failure = failure
        self._discards = True
        self._unread.clear()
        self.read_on()
        self._wake()

    def cut(self) -> str:
        """Take what came of an unfinished message: as a message if it is one, else as text."""
        messages, partial = self._lines.finish()
        self._unread += messages
        self._wake()
        return excerpt(partial)

    def pause(self) -> None:
        """Read no more for now."""
        if self.is_reading:
            self._loop.remove_reader(self.fd)
            self.is_reading = False

    def read_on(self) -> None:
        """Read again, however much waits to be received, until that is too much once more."""
        if self.fd >= 0 and not self.at_end and (self.failure is None or self._discards):
            self._loop.add_reader(self.fd, self._readable)
            self.is_reading = True

    def _readable(self) -> None:
        try:
            count = os.readv(self.fd, [self._buffer])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            count, self.error = 0, str(error.strerror)
        if not count:
            self.at_end = True
            self.pause()
            self._stopped()
        elif not self._discards:
            self._keep(bytes(self._buffer[:count]))

    def _keep(self, data: bytes) -> None:
        """Add to what waits. An unfinished line does not count: it has a limit of its own."""
        messages = self._lines.feed(data)
        self.bytes_read += len(data)
        self._unfinished_bytes += len(data)
        if messages:
            if self._unread:
                self._unread += messages
            else:
                self._unread = messages
            self._unread_bytes += self._unfinished_bytes
            self._unfinished_bytes = 0
            if self._unread_bytes > UNREAD_BYTES_MAX:
                self.pause()
            self._wake()
        if self._lines.failure is not None:
            self.failure = self._lines.failure
            self._stopped()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
