"""Read the server's news, and say which turn of which thread it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.codex.failures import EventsLost
from holdfast.codex.model import EventsDropped, UnknownEvent
from holdfast.codex.wire.generated import (
    NOTIFICATIONS,
    AgentMessageDeltaNotification,
    CommandExecutionOutputDeltaNotification,
    FileChangeOutputDeltaNotification,
    PlanDeltaNotification,
    ReasoningSummaryTextDeltaNotification,
    ReasoningTextDeltaNotification,
    ThreadArchivedNotification,
    ThreadClosedNotification,
    ThreadDeletedNotification,
    TurnCompletedNotification,
    TurnStartedNotification,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import read_params
from holdfast.rpc.failures import ParamsInvalid
from holdfast.rpc.model import Notification

DELTAS: frozenset[type[WireMessage]] = frozenset(
    {
        AgentMessageDeltaNotification,
        CommandExecutionOutputDeltaNotification,
        FileChangeOutputDeltaNotification,
        PlanDeltaNotification,
        ReasoningSummaryTextDeltaNotification,
        ReasoningTextDeltaNotification,
    }
)
"""What only repeats, bit by bit, what a completed item says as a whole."""

CLOSED: dict[type[WireMessage], str] = {
    ThreadClosedNotification: "it was closed",
    ThreadArchivedNotification: "it was archived",
    ThreadDeletedNotification: "it was deleted",
}
"""After which the server sends no more news of a thread, and why."""

TURN_COMPLETED = "turn/completed"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_READ: dict[str, Callable[[msgspec.Raw], WireMessage]] = {
    method: msgspec.json.Decoder(kind).decode for method, kind in NOTIFICATIONS.items()
}
KNOWN = frozenset(_READ)
"""The news that this version has a type for, by method."""


def read_event(notification: Notification) -> WireMessage:
    """Read one notification; what is unknown or misshapen stays readable as it came."""
    read = _READ.get(notification.method)
    if read is not None:
        try:
            return read(notification.params)
        except _UNREADABLE:
            pass  # most often something new, which the lenient reading knows how to take
        try:
            return read_params(
                notification.method, NOTIFICATIONS[notification.method], notification.params
            )
        except ParamsInvalid:
            pass
    return UnknownEvent(notification.method, _anything(notification.params))


def thread_of(event: WireMessage) -> str | None:
    """The thread that an event is about, if it is about one."""
    found: object = getattr(event, "thread_id", None)
    if isinstance(found, str):
        return found or None
    match event:
        case UnknownEvent(params={"threadId": str(thread)}):
            return thread
        case _:
            return None


def turn_of(event: WireMessage) -> str | None:
    """The turn that an event is about, if it is about one."""
    found: object = getattr(event, "turn_id", None)
    if isinstance(found, str):
        return found or None
    match event:
        case TurnStartedNotification(turn=turn) | TurnCompletedNotification(turn=turn):
            return turn.id
        case UnknownEvent(params={"turnId": str(id_)} | {"turn": {"id": str(id_)}}):
            return id_
        case _:
            return None


def is_end(event: WireMessage) -> bool:
    """Whether a turn ends with it, be it readable or not."""
    if isinstance(event, UnknownEvent):
        return event.method == TURN_COMPLETED
    return isinstance(event, TurnCompletedNotification)


def _anything(params: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(params) if bytes(params) else None
    except _UNREADABLE:
        return None


# What one reader of a turn has not read yet, in bounded memory.


class ThreadEventFeed:
    """Events that wait for one reader.

    When too much waits, deltas go first: what they say comes again, whole, with their item. When
    that is not enough, the feed ends rather than leave out what cannot be had again.
    """

    def __init__(self, thread: str, *, items_max: int, bytes_max: int) -> None:
        self._thread = thread
        self._items_max, self._bytes_max = items_max, bytes_max
        self._batches: list[tuple[Sequence[WireMessage], int]] = []
        self._items = self._bytes = self._dropped = 0

    def put(self, events: Sequence[WireMessage], size: int) -> None:
        """Add events of so many bytes each; raises when nothing more can be kept."""
        self._keep(events, size)
        if self._items > self._items_max or self._bytes > self._bytes_max:
            self._make_room()

    def take(self) -> list[WireMessage]:
        """Hand over all that waits, in order."""
        taken: list[WireMessage] = [EventsDropped(self._dropped)] if self._dropped else []
        for events, _ in self._batches:
            taken += events
        self._clear()
        self._dropped = 0
        return taken

    def _make_room(self) -> None:
        before, batches = self._items, self._batches
        self._clear()
        for events, size in batches:
            if kept := [event for event in events if type(event) not in DELTAS]:
                self._keep(kept, size)
        self._dropped += before - self._items
        if self._items > self._items_max // 2 or self._bytes > self._bytes_max // 2:
            self._clear()
            raise EventsLost(thread=self._thread)

    def _keep(self, events: Sequence[WireMessage], size: int) -> None:
        self._batches.append((events, size))
        self._items += len(events)
        self._bytes += len(events) * size

    def _clear(self) -> None:
        self._batches, self._items, self._bytes = [], 0, 0
