"""A stream of messages over two file descriptors, and the reason when it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from holdfast.failures import Failure
from holdfast.rpc.framing import EndContext, EndEvidence, LineDecoder, excerpt, join

# Read messages, a line each, from a file descriptor.

READ_BYTES = 256 * 2**10
UNREAD_BYTES_MAX = 2**20


class LineReader:
    """Hands on what was read, one batch per wake-up, to the one task that receives.

    When too much waits to be received, reading stops and the other side comes to block.
    """

    def __init__(self, fd: int, lines: LineDecoder, stopped: Callable[[], None]) -> None:
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


# Write messages, a line each, to a file descriptor.

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
        judge: Callable[[EndEvidence, EndContext], Failure | None],
        stderr: Callable[[], str] = str,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._judge, self._stderr = judge, stderr
        self._evidence = EndEvidence()
        self._partial = ""
        self._later: asyncio.TimerHandle | None = None
        self._read_before = 0
        lines = LineDecoder(message_bytes_max=message_bytes_max)
        self.failure: Failure | None = None
        self.reader = LineReader(read_fd, lines, self._stopped)
        self.writer = LineWriter(write_fd, self._stopped)

    def exited(self, status: int) -> None:
        """Take note that the process at the other end is dead."""
        self._evidence = replace(self._evidence, status=status)
        self._classify_end()

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
        self._classify_end()

    def _classify_end(self) -> None:
        """End as soon as it can be told why; while it cannot, wait a moment."""
        if self.failure is not None:
            return
        if self._evidence.at_end or self._evidence.waited:
            self._partial = self._partial or self.reader.cut()
        remains = EndContext(stderr=self._stderr(), partial=self._partial)
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
            self._classify_end()
        else:
            self.reader.read_on()
            self._wait()
