"""Follow the threads of one connection: who reads which, and which turn runs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy

import anyio

from holdfast.codex.core.events import is_known, read_event, thread_of
from holdfast.codex.core.feed import Feed
from holdfast.codex.core.turns import Turns
from holdfast.codex.failures import EventsLost, TurnInProgress
from holdfast.codex.model import UnknownEvent
from holdfast.codex.wire.generated import TurnCompletedNotification, TurnStartedNotification
from holdfast.codex.wire.message import Message
from holdfast.failures import Failure
from holdfast.rpc.model import Notification
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import NotificationUnknown

ITEMS_MAX = 100_000
BYTES_MAX = 64 * 2**20
_TURN_NEWS = (TurnStartedNotification, TurnCompletedNotification, UnknownEvent)


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

    def put(self, event: Message, size: int) -> None:
        """Add an event."""
        if self._end is None:
            try:
                self._feed.put(event, size)
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

    def take(self, event: Message, size: int) -> None:
        """Learn from one event, and hand it to every reader."""
        self.turns.take(event)
        for reader in self.readers:
            reader.put(event, size)
        if isinstance(event, _TURN_NEWS):
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
        share = size // len(batch) + 1
        for notification in batch:
            if not is_known(notification.method):
                self._telemetry.emit(NotificationUnknown(method=notification.method))
            event = read_event(notification)
            thread = thread_of(event)
            if thread is not None:
                followed = self._followed.get(thread)
                if followed is not None:
                    followed.take(event, share)

    def end(self, failure: Failure) -> None:
        """Tell everyone that nothing will follow."""
        for followed in self._followed.values():
            followed.end(failure)
