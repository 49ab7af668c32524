"""In-memory transport pair for tests, with injectable faults: delay, tampering, cuts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from copy import copy
from math import inf

import anyio

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.framing import MESSAGE_BYTES_MAX, LineDecoder, excerpt, join

BUFFER_BYTES_MAX = 64 * 2**10


class Link:
    """One direction of a connection; its public attributes are the faults to inject.

    `delay`: seconds that messages are in transit. `tamper`: maps a message to the messages that
    arrive instead. `cut_after`: the connection is cut after so many more bytes, newlines included.
    """

    def __init__(self, *, buffer_bytes_max: int, message_bytes_max: int) -> None:
        self.delay = 0.0
        self.tamper: Callable[[bytes], Sequence[bytes]] = lambda message: (message,)
        self.cut_after = inf
        self._buffer_bytes_max = buffer_bytes_max
        self._lines = LineDecoder(message_bytes_max=message_bytes_max)
        self._under_way: deque[tuple[float, list[bytes], int]] = deque()
        self._bytes = 0
        self._end: tuple[float, Failure] | None = None

    @property
    def is_full(self) -> bool:
        """Whether senders must wait."""
        return self._bytes >= self._buffer_bytes_max

    @property
    def due(self) -> float:
        """The time at which the next message or the end arrives."""
        if self._under_way:
            return self._under_way[0][0]
        return self.end_due

    @property
    def end_due(self) -> float:
        return inf if self._end is None else self._end[0]

    def put(self, messages: Sequence[bytes], now: float) -> bool:
        """Put messages in transit; returns whether the connection survived."""
        data = join([piece for message in messages for piece in self.tamper(message)])
        carried = data[: int(min(self.cut_after, len(data)))]
        self.cut_after -= len(carried)
        self._bytes += len(carried)
        if self._end is None:
            self._under_way.append((now + self.delay, self._lines.feed(carried), len(carried)))
            if self._lines.failure is not None:
                self.end(self._lines.failure, now)
        return self.cut_after > 0

    def take(self, now: float) -> list[bytes]:
        """Return the messages that have arrived."""
        arrived: list[bytes] = []
        while self._under_way and self._under_way[0][0] <= now:
            _, messages, size = self._under_way.popleft()
            arrived += messages
            self._bytes -= size
        return arrived

    def ended(self, now: float) -> Failure | None:
        """The failure that ended the link, if its arrival time has come."""
        return self._end[1] if self._end is not None and self._end[0] <= now else None

    def end(self, failure: Failure, now: float) -> None:
        """Carry no more messages; those in transit still arrive."""
        if self._end is None:
            last_due = self._under_way[-1][0] if self._under_way else now
            self._end = max(now + self.delay, last_due), failure

    def cut(self, reason: str, now: float) -> None:
        """End at once, and drop the messages in transit."""
        is_whole = True
        while self._under_way and self._under_way[-1][0] > now:
            self._under_way.pop()
            is_whole = False
        messages, partial = self._lines.finish()
        # Otherwise the partial message follows messages that were dropped.
        if is_whole:
            self._under_way.append((now, messages, 0))
        if self.ended(now) is None:
            self._end = now, ConnectionLost(reason=reason, partial=excerpt(partial))

    def abandon(self) -> None:
        """Drop the messages in transit: the receiver has closed."""
        self._under_way.clear()


class Wakeup:
    """Wakes all tasks that wait at either end of a connection."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify(self) -> None:
        self._event.set()
        self._event = anyio.Event()

    async def wait(self, *, until: float) -> None:
        """Wait for `notify`, or until a point in time."""
        with anyio.CancelScope(deadline=until):
            await self._event.wait()


class MemoryTransport:
    """One end of a connection in memory; inject faults through `outgoing`."""

    def __init__(self, outgoing: Link, incoming: Link, wakeup: Wakeup) -> None:
        self.outgoing = outgoing
        self._incoming = incoming
        self._wakeup = wakeup
        self._closed: Failure | None = None

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that have arrived since the last call; raises the failure that
        ended it.
        """
        while True:
            now = anyio.current_time()
            if messages := self._incoming.take(now):
                self._wakeup.notify()
                return messages
            self._raise_ended(now)
            await self._wakeup.wait(until=self._incoming.due)

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the link is full."""
        while not self.offer(messages):
            await self._wakeup.wait(until=self._incoming.end_due)

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the link has room; returns whether it did."""
        now = anyio.current_time()
        self._raise_ended(now)
        if self.outgoing.is_full:
            return False
        if not self.outgoing.put(messages, now):
            self.cut()
        self._wakeup.notify()
        return True

    async def aclose(self) -> None:
        """Close cleanly; messages in transit still arrive."""
        now = anyio.current_time()
        self._closed = self._closed or self._incoming.ended(now) or _closed("closed by us")
        self._incoming.abandon()
        self.outgoing.end(_closed("the other side closed it"), now)
        self._wakeup.notify()

    def cut(self, reason: str = "cut") -> None:
        """Cut the connection for both ends, and drop the messages in transit."""
        now = anyio.current_time()
        self.outgoing.cut(reason, now)
        self._incoming.cut(reason, now)
        self._wakeup.notify()

    def _raise_ended(self, now: float) -> None:
        failure = self._closed or self._incoming.ended(now)
        if failure is not None:
            raise copy(failure)


def pair(
    *, buffer_bytes_max: int = BUFFER_BYTES_MAX, message_bytes_max: int = MESSAGE_BYTES_MAX
) -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected transports."""
    one, two = (
        Link(buffer_bytes_max=buffer_bytes_max, message_bytes_max=message_bytes_max)
        for _ in range(2)
    )
    wakeup = Wakeup()
    return MemoryTransport(one, two, wakeup), MemoryTransport(two, one, wakeup)


def _closed(reason: str) -> ConnectionClosed:
    return ConnectionClosed(reason=reason)
