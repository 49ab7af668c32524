"""Follow the threads of one connection: who reads which, and which turn runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import groupby
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from holdfast.codex.events import (
    CLOSED,
    DELTAS,
    KNOWN,
    ThreadEventFeed,
    read_event,
    thread_of,
    turn_of,
)
from holdfast.codex.failures import EventsLost, ThreadClosed, TurnInProgress
from holdfast.codex.turns import TurnTracker
from holdfast.codex.wire.message import WireMessage
from holdfast.failures import Failure, boundary
from holdfast.rpc.failures import ConnectionClosed, RequestTimedOut
from holdfast.rpc.model import Notification
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import NotificationUnknown

Answered = TypeVar("Answered")
StartRequest = Callable[[], Awaitable[tuple[str | None, Answered]]]

ITEMS_MAX = 100_000
BYTES_MAX = 64 * 2**20


class SubscriptionReader:
    """The events of one thread for one reader, from its creation on."""

    def __init__(self, feed: ThreadEventFeed) -> None:
        self._feed = feed
        self.turn: str | None = None  # that was started while this reader was held
        self._stirred = anyio.Event()
        self._end: Failure | None = None

    async def receive(self) -> Sequence[WireMessage]:
        """Wait for events; raise what ended the connection, or this feed."""
        while not (events := self._feed.take()):
            if self._end is not None:
                raise copy(self._end)
            self._stirred = anyio.Event()
            await self._stirred.wait()
        return events

    def put(self, events: Sequence[WireMessage], size: int) -> None:
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


class SharedResult(Generic[Answered]):
    """What one task does and another waits for; the last that was settled counts."""

    def __init__(self) -> None:
        self._settled: Answered | Failure
        self._published = anyio.Event()

    def settle(self, outcome: Answered | Failure) -> None:
        self._settled = outcome

    def publish(self) -> None:
        self._published.set()

    async def wait(self) -> Answered:
        """Wait until it is published; raise a failure, return anything else."""
        await self._published.wait()
        if isinstance(self._settled, Failure):
            raise self._settled
        return self._settled


class ThreadSubscription:
    """One thread: its turns, its readers, and whether a turn may be started."""

    def __init__(self, thread: str, tasks: TaskGroup) -> None:
        self.turns = TurnTracker(thread)
        self.readers: list[SubscriptionReader] = []
        self.is_starting = False
        self.is_in_doubt = False  # a start timed out: only the server knows whether a turn runs
        self._tasks = tasks
        self._held: SubscriptionReader | None = None
        self._refusal: Failure | None = None  # why no turn can be started
        self._changed = anyio.Event()

    @contextmanager
    def reading(self, *, is_continued: bool = False) -> Generator[SubscriptionReader]:
        """Read the thread in this block: from now on, or from where a held reader began."""
        reader = (self._held if is_continued else None) or self._reader()
        if reader is self._held:
            self._held = None
        try:
            yield reader
        finally:
            self.readers.remove(reader)

    def hold(self) -> None:
        """Keep the news from now on for `reading(is_continued=True)`, in place of what was kept."""
        if self._held is not None:
            self.readers.remove(self._held)
        self._held = self._reader()

    async def start(self, request: StartRequest[Answered]) -> Answered:
        """Start a turn by a request that returns its id and an answer.

        The second start at a time is refused, and so is one in a closed thread. The request goes
        on when the caller is cancelled: until it is settled no other turn can be started, since the
        server would mix the next prompt into this turn.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._refusal is not None:
            raise copy(self._refusal)
        if self.is_starting or self.turns.active is not None:
            raise TurnInProgress(thread=self.turns.thread, turn=self.turns.active or "")
        self.is_starting = True
        outcome: SharedResult[Answered] = SharedResult()
        self._tasks.start_soon(self._start, request, outcome)
        return await outcome.wait()

    async def _start(
        self,
        request: StartRequest[Answered],
        outcome: SharedResult[Answered],
    ) -> None:
        outcome.settle(ConnectionClosed(reason="closed by this side"))  # should this be cancelled
        try:
            with boundary("codex.turn.start"):
                turn, answer = await request()
            self.is_in_doubt = False
            if turn is not None:
                self.turns.started(turn)
                if self._held is not None:
                    self._held.turn = turn
            outcome.settle(answer)
        except Failure as failure:
            self.is_in_doubt = self.is_in_doubt or isinstance(failure, RequestTimedOut)
            outcome.settle(failure)
        finally:
            self.is_starting = False
            outcome.publish()
            self._notify()

    def take(self, events: Sequence[WireMessage], size: int) -> None:
        """Learn from events of so many bytes each, and hand them to every reader."""
        telling = [event for event in events if type(event) not in DELTAS]
        for event in telling:
            self.turns.take(event)
        for reader in self.readers:
            reader.put(events, size)
        if self.turns.active is not None:
            self.is_in_doubt = False
        for event in telling:
            if type(event) in CLOSED:
                self.close(CLOSED[type(event)])
        if telling:
            self._notify()

    async def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something is so of the turns; any number may wait."""
        while not holds():
            await self._changed.wait()

    def check_end(self, turn: str | None) -> bool:
        """Whether a turn has ended, or the last one if None; raise what hides its end."""
        turn = turn or self.turns.unseen
        if self._refusal is not None and turn is not None and not self.turns.has_ended(turn):
            raise copy(self._refusal)
        return turn is None or self.turns.active != turn

    def give_up(self, turn: str) -> None:
        """Take a turn for ended that the server does not run."""
        self.turns.give_up(turn)
        self._notify()

    def close(self, reason: str) -> None:
        """End every reader, and start no turn until the thread is opened again."""
        self._refusal = closed = ThreadClosed(thread=self.turns.thread, reason=reason)
        self.turns.end()
        self._notify()
        for reader in self.readers:
            reader.end(closed)

    def open(self, running: str | None, *, is_in_doubt: bool) -> None:
        """Take note that the server sends news of the thread, also after it was closed.

        `running` is the turn that runs there. When it is unknown whether one does, that is in
        doubt: the next start asks first.
        """
        self._refusal = None
        self.turns.open()
        if running is not None:
            self.turns.found(running)
        self.is_in_doubt = is_in_doubt and self.turns.active is None

    def end(self, failure: Failure) -> None:
        """Tell every reader that nothing will follow, and start no turn any more."""
        self._refusal = failure
        self.turns.end()
        self._notify()
        for reader in self.readers:
            reader.end(failure)

    def _reader(self) -> SubscriptionReader:
        reader = SubscriptionReader(
            ThreadEventFeed(self.turns.thread, items_max=ITEMS_MAX, bytes_max=BYTES_MAX)
        )
        self.readers.append(reader)
        return reader

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class Router:
    """Reads all news of a connection once, and hands each piece to the thread it is about."""

    def __init__(self, telemetry: Telemetry, tasks: TaskGroup) -> None:
        self._telemetry, self._tasks = telemetry, tasks
        self._followed: dict[str, ThreadSubscription] = {}
        self._end: Failure | None = None

    @property
    def is_open(self) -> bool:
        """Whether news may still come: the connection has not ended."""
        return self._end is None

    def followed(self, thread: str) -> ThreadSubscription:
        """What is known of a thread."""
        found = self._followed.get(thread)
        if found is None:
            found = self._followed[thread] = ThreadSubscription(thread, self._tasks)
            if self._end is not None:
                found.end(self._end)
        return found

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Take what one read yielded: so many bytes."""
        if {notification.method for notification in batch} - KNOWN:
            self._count_unknown(batch)
        share = size // len(batch) + 1
        for thread, events in groupby(map(read_event, batch), key=self._thread_of):
            if thread is not None and thread in self._followed:
                self._followed[thread].take(list(events), share)

    def end(self, failure: Failure) -> None:
        """Tell everyone that nothing will follow."""
        self._end = failure
        for followed in self._followed.values():
            followed.end(failure)

    def _thread_of(self, event: WireMessage) -> str | None:
        """The thread that an event is about: by its id, else by the turn that runs there."""
        thread = thread_of(event)
        if thread is None and (turn := turn_of(event)) is not None:
            running = (id_ for id_, it in self._followed.items() if it.turns.active == turn)
            return next(running, None)
        return thread

    def _count_unknown(self, batch: Sequence[Notification]) -> None:
        for notification in batch:
            if notification.method not in KNOWN:
                self._telemetry.emit(NotificationUnknown(method=notification.method))
