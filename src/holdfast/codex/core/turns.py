"""Follow the turns of one thread by its news: which one runs, and what it left."""

from __future__ import annotations

from holdfast.codex.core.events import is_end, turn_of
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
        self.has_begun = False  # the active one: asked for and answered is not yet begun
        self._ended: str | None = None
        self._is_over = False
        self._changes: dict[str, tuple[FileUpdateChange, ...]] = {}

    def take(self, event: Message) -> None:
        """Learn from one event of the thread."""
        match event:
            case TurnStartedNotification(turn=turn):
                self.active, self.has_begun = turn.id, True
            case _ if is_end(event):
                self._changes.clear()
                self._ended = turn_of(event) or self.active
                if self.active == self._ended:
                    self.active = None
            case ItemStartedNotification(item=FileChangeThreadItem(id=id_, changes=changes)):
                self._changes[id_] = changes
            case ItemCompletedNotification(item=FileChangeThreadItem(id=id_)):
                self._changes.pop(id_, None)
            case _:
                pass

    def started(self, turn: str) -> None:
        """Learn from the answer to `turn/start`, which may come after the turn's own news."""
        if turn not in (self._ended, self.active) and not self._is_over:
            self.active, self.has_begun = turn, False

    def found(self, turn: str) -> None:
        """Learn of a turn that began before we came, unless its end came first."""
        self.started(turn)
        self.has_begun = self.active is not None

    def end(self) -> None:
        """Learn that nothing will follow, whatever an answer that came before still says."""
        self._is_over = True
        self.active = None

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
