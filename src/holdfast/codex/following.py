"""Follow the threads of one connection: who reads which, and which turn runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import groupby

import anyio

from holdfast.codex.core.events import DELTAS, KNOWN, read_event, thread_of
from holdfast.codex.core.feed import Feed
from holdfast.codex.core.turns import Turns
from holdfast.codex.failures import EventsLost, TurnInProgress
from holdfast.codex.wire.message import Message
from holdfast.failures import Failure
from holdfast.rpc.model import Notification
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import NotificationUnknown

ITEMS_MAX = 100_000
BYTES_MAX = 64 * 2**20


class Reader:
    """The events of one thread for one reader, from its creation on."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._stirred = anyio.Event()
        self._end: Failure | None = None

    async def receive(self) -> Sequence[Message]:
        """Wait for events; raise what ended the connection, or this feed."""
        while not (events := self._feed.take()):
            if self._end is not None:
                raise copy(self._end)
            self._stirred = anyio.Event()
            await self._stirred.wait()
        return events

    def put(self, events: Sequence[Message], size: int) -> None:
        """Add events of so many bytes each."""
        if self._end is None:
            try:
                self._feed.put(events, size)
            except EventsLost as lost:
                self._end = lost
        self._stirred.set()

    def end(self, failure: Failure) -> None:
        """Say that nothing will follow; the first reason stays."""
        self._end = self._end or failure
        self._stirred.set()


class Followed:
    """One thread: its turns, and those who read it."""

    def __init__(self, thread: str) -> None:
        self.turns = Turns(thread)
        self.readers: list[Reader] = []
        self.is_starting = False
        self._changed = anyio.Event()

    @contextmanager
    def reading(self) -> Generator[Reader]:
        """Read the thread in this block."""
        feed = Feed(self.turns.thread, items_max=ITEMS_MAX, bytes_max=BYTES_MAX)
        reader = Reader(feed)
        self.readers.append(reader)
        try:
            yield reader
        finally:
            self.readers.remove(reader)

    @contextmanager
    def starting(self) -> Generator[None]:
        """Start a turn in this block; the second one at a time is refused."""
        if self.is_starting or self.turns.active is not None:
            raise TurnInProgress(thread=self.turns.thread, turn=self.turns.active or "")
        self.is_starting = True
        try:
            yield
        finally:
            self.is_starting = False
            self._stir()

    def take(self, events: Sequence[Message], size: int) -> None:
        """Learn from events of so many bytes each, and hand them to every reader."""
        telling = [event for event in events if type(event) not in DELTAS]
        for event in telling:
            self.turns.take(event)
        for reader in self.readers:
            reader.put(events, size)
        if telling:
            self._stir()

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something is so of the turns; any number may wait."""
        while not holds():
            await self._changed.wait()

    def end(self, failure: Failure) -> None:
        """Tell every reader that nothing will follow."""
        self.turns.end()
        self._stir()
        for reader in self.readers:
            reader.end(failure)

    def _stir(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Router:
    """Reads all news of a connection once, and hands each piece to the thread it is about."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._followed: dict[str, Followed] = {}

    def followed(self, thread: str) -> Followed:
        """What is known of a thread."""
        return self._followed.setdefault(thread, Followed(thread))

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Take what one read yielded: so many bytes."""
        if {notification.method for notification in batch} - KNOWN:
            self._count_unknown(batch)
        share = size // len(batch) + 1
        for thread, events in groupby(map(read_event, batch), key=thread_of):
            if thread is not None and thread in self._followed:
                self._followed[thread].take(list(events), share)

    def end(self, failure: Failure) -> None:
        """Tell everyone that nothing will follow."""
        for followed in self._followed.values():
            followed.end(failure)

    def _count_unknown(self, batch: Sequence[Notification]) -> None:
        for notification in batch:
            if notification.method not in KNOWN:
                self._telemetry.emit(NotificationUnknown(method=notification.method))
