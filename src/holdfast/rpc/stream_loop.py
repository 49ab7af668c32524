"""A stream of messages over two file descriptors, and the reason when it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace

from holdfast.failures import Failure
from holdfast.rpc.core.ending import Evidence, Remains
from holdfast.rpc.core.framing import Lines
from holdfast.rpc.reader_loop import READ_BYTES, LineReader
from holdfast.rpc.writer_loop import LineWriter

VERDICT_WAIT = 0.5


class LineStream:
    """Carries messages both ways until it ends, in bounded memory, and says why it ended.

    Owns the descriptors, which may be one and the same. All work is done by callbacks of the loop
    and by those who call: there is no task that could leak. Whenever more is known about its end,
    `judge` is asked; while that cannot tell, it is asked again after a moment.
    """

    def __init__(
        self,
        *,
        read_fd: int,
        write_fd: int,
        message_bytes_max: int,
        judge: Callable[[Evidence, Remains], Failure | None],
        stderr: Callable[[], str] = str,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._judge, self._stderr = judge, stderr
        self._evidence = Evidence()
        self._partial = ""
        self._later: asyncio.TimerHandle | None = None
        self._read_before = 0
        lines = Lines(message_bytes_max=message_bytes_max)
        self.failure: Failure | None = None
        self.reader = LineReader(read_fd, lines, self._stopped)
        self.writer = LineWriter(write_fd, self._stopped)

    def exited(self, status: int) -> None:
        """Take note that the process at the other end is dead."""
        self._evidence = replace(self._evidence, status=status)
        self._consider()

    def end(self, failure: Failure) -> None:
        """Take no more: what was read is still received, then everyone gets this failure."""
        if self.failure is None:
            self.failure = failure
            self.reader.end(failure)
            self.writer.end(failure)

    def retire(self, failure: Failure) -> None:
        """Give up on the other side: what it says is thrown away, what we said is still sent."""
        self.failure = self.failure or failure
        self.reader.discard(self.failure)
        self.writer.refuse(self.failure)

    def close(self) -> None:
        """Release the descriptors and the timer; may be called again."""
        if self._later is not None:
            self._later.cancel()
        is_shared = self.reader.fd == self.writer.fd
        self.reader.pause()
        self.writer.close()
        if self.reader.fd >= 0 and not is_shared:
            os.close(self.reader.fd)
        self.reader.fd = -1

    def _stopped(self) -> None:
        if self.reader.failure is not None:
            self.end(self.reader.failure)
            return
        at_end = self.reader.at_end
        error = self.reader.error if at_end else self.writer.error
        self._evidence = replace(self._evidence, at_end=at_end, error=error)
        self._consider()

    def _consider(self) -> None:
        """End as soon as it can be told why; while it cannot, wait a moment."""
        if self.failure is not None:
            return
        if self._evidence.at_end or self._evidence.waited:
            self._partial = self._partial or self.reader.cut()
        remains = Remains(stderr=self._stderr(), partial=self._partial)
        failure = self._judge(self._evidence, remains)
        if failure is not None:
            self.end(failure)
        elif self._later is None:
            self._read_before = self.reader.bytes_read
            self._wait()

    def _wait(self) -> None:
        self._later = self._loop.call_later(VERDICT_WAIT, self._waited)

    def _waited(self) -> None:
        """Waiting tells no more, unless what was said before the end is still unread.

        Then a little more is read although nobody receives: whoever should may wait for one who
        sends, and that one for us.
        """
        read_since = self.reader.bytes_read - self._read_before
        if self.reader.is_reading or self.reader.at_end or read_since > READ_BYTES:
            self._evidence = replace(self._evidence, waited=True)
            self._consider()
        else:
            self.reader.read_on()
            self._wait()
