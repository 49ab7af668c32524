"""Follow the turns of one thread by its news: which one runs, and what it left."""

from __future__ import annotations

from holdfast.codex.core.model_failures import failure_of
from holdfast.codex.model import Answer
from holdfast.codex.wire.generated import (
    AgentMessageThreadItem,
    FileChangeThreadItem,
    FileUpdateChange,
    ItemCompletedNotification,
    ItemStartedNotification,
    ThreadItem,
    ThreadTokenUsage,
    ThreadTokenUsageUpdatedNotification,
    TurnCompletedNotification,
    TurnStartedNotification,
)
from holdfast.codex.wire.message import Message


class Turns:
    """Which turn of a thread is active, and which file changes wait for an approval."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.active: str | None = None
        self._ended: str | None = None
        self._changes: dict[str, tuple[FileUpdateChange, ...]] = {}

    def take(self, event: Message) -> None:
        """Learn from one event of the thread."""
        match event:
            case TurnStartedNotification(turn=turn):
                self.active = turn.id
            case TurnCompletedNotification(turn=turn):
                self._changes.clear()
                self._ended = turn.id
                if self.active == turn.id:
                    self.active = None
            case ItemStartedNotification(item=FileChangeThreadItem(id=id_, changes=changes)):
                self._changes[id_] = changes
            case ItemCompletedNotification(item=FileChangeThreadItem(id=id_)):
                self._changes.pop(id_, None)
            case _:
                pass

    def started(self, turn: str) -> None:
        """Learn from the answer to `turn/start`, which may come after the turn's own news."""
        if turn != self._ended:
            self.active = turn

    def changes_of(self, item: str) -> tuple[FileUpdateChange, ...]:
        """What a file change that waits would do: the server says so before it asks."""
        return self._changes.get(item, ())


class Gathered:
    """What a turn leaves, gathered from its events: finished items only, never deltas."""

    def __init__(self) -> None:
        self._items: list[ThreadItem] = []
        self._usage: ThreadTokenUsage | None = None

    def take(self, event: Message) -> Answer | None:
        """Add one event; the last one of the turn gives the answer."""
        match event:
            case ItemCompletedNotification(item=item):
                self._items.append(item)
            case ThreadTokenUsageUpdatedNotification(token_usage=usage):
                self._usage = usage
            case TurnCompletedNotification(turn=turn):
                said = [i.text for i in self._items if isinstance(i, AgentMessageThreadItem)]
                error = failure_of(turn.error) if turn.error is not None else None
                text = said[-1] if said else ""
                return Answer(turn.status, text, tuple(self._items), self._usage, error)
            case _:
                pass
        return None
