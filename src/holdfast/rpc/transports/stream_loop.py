"""Newline-delimited message stream over two file descriptors, with the failure that ends it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

from holdfast.failures import Failure
from holdfast.rpc.framing import EndContext, EndEvidence, LineDecoder, excerpt, join

READ_BYTES = 256 * 2**10
UNREAD_BYTES_MAX = 2**20


class LineReader:
    """Reads messages, one per line, from a non-blocking descriptor for one receiving task.

    Flow control: when more than `UNREAD_BYTES_MAX` is unread the reader stops, so that the pipe
    fills up and the other side blocks.
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
        """Whether messages are buffered that no caller has received."""
        return bool(self._unread)

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages since the last call; raises the failure that ended the stream."""
        assert self._arrival is None, "one task receives"
        while not self._unread:
            if self.failure is not None:
                # Each caller gets a copy: one exception raised in several tasks would collect all
                # tracebacks.
                raise copy(self.failure)
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
        """Stop reading; callers get the failure after all buffered messages."""
        self.failure = failure
        self.pause()
        self._wake()

    def discard(self, failure: Failure) -> None:
        """Raise the failure at once; keeps reading and discards, so that the other side does not
        block.
        """
        self.failure = failure
        self._discards = True
        self._unread.clear()
        self.read_on()
        self._wake()

    def cut(self) -> str:
        """Take an unfinished message at the end of the stream: as a message if complete, else
        as text.
        """
        messages, partial = self._lines.finish()
        self._unread += messages
        self._wake()
        return excerpt(partial)

    def pause(self) -> None:
        """Stop reading until `read_on`."""
        if self.is_reading:
            self._loop.remove_reader(self.fd)
            self.is_reading = False

    def read_on(self) -> None:
        """Read again, however much is buffered, until the buffer exceeds its limit once more."""
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
        """Buffer messages. An unfinished line does not count: the decoder bounds it."""
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


UNSENT_BYTES_MAX = 256 * 2**10


class LineWriter:
    """Writes messages straight to the descriptor; senders wait while its buffer is full."""

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
        """Send all messages, or none if the caller is cancelled or the stream ends while it
        waits.
        """
        await self._room()
        self.offer(messages)
        if self.error:
            await self._room()  # until it is known why
        # A sender whose peer reads as fast as it sends never suspends, and would starve other
        # tasks. A sender whose peer reads as fast as it sends would never suspend, and starve all
        # other tasks.
        if self._unyielded_bytes > UNSENT_BYTES_MAX:
            self._unyielded_bytes = 0
            await asyncio.sleep(0)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send all messages if the buffer has room; returns whether it did."""
        if self._failure is not None:
            raise copy(self._failure)
        if not self._has_room():
            return False
        data = join(messages)
        self._unyielded_bytes += len(data)
        self._write(data)
        return True

    async def flushed(self) -> None:
        """Wait until the buffer is empty, or the stream has failed."""
        while self._unsent:
            await self._turn()

    def refuse(self, failure: Failure) -> None:
        """Accept no more messages; the buffer is still sent."""
        self._failure = failure
        self._wake()

    def end(self, failure: Failure) -> None:
        """Accept no more messages, and drop the buffer."""
        self._drop()
        self.refuse(failure)

    def close(self) -> None:
        """Close the descriptor, so that the other side reads EOF; idempotent."""
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
        """Write to the descriptor; returns the number of bytes taken. A broken pipe takes
        everything.
        """
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
    """Bidirectional message stream in bounded memory, which names the failure that ended it.

    Owns both descriptors, which may be the same. All work happens in callbacks of the event loop
    and in its callers: there is no task that could leak. Whenever there is new evidence of an end,
    `judge` is called; while it returns None it is called again after `VERDICT_WAIT`.
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
        """Take the exit status of the process at the other end."""
        self._evidence = replace(self._evidence, status=status)
        self._classify_end()

    def end(self, failure: Failure) -> None:
        """End the stream: buffered messages are still received, then every caller gets the
        failure.
        """
        if self.failure is None:
            self.failure = failure
            self.reader.end(failure)
            self.writer.end(failure)

    def retire(self, failure: Failure) -> None:
        """Discard what the other side sends; our buffered messages are still sent."""
        self.failure = self.failure or failure
        self.reader.discard(self.failure)
        self.writer.refuse(self.failure)

    def close(self) -> None:
        """Close the descriptors and the timer; idempotent."""
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
        """End the stream as soon as the evidence decides the failure; until then wait."""
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
        """Conclude after the wait, unless bytes from before the end are still unread.

        Then a little more is read although no task receives: the receiver may wait for a sender,
        and that sender for this stream.
        """
        read_since = self.reader.bytes_read - self._read_before
        if self.reader.is_reading or self.reader.at_end or read_since > READ_BYTES:
            self._evidence = replace(self._evidence, waited=True)
            self._classify_end()
        else:
            self.reader.read_on()
            self._wait()
