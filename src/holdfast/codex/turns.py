"""Follow the turns of one thread by its news: which one runs, and what it left."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.codex.events import is_end, turn_of
from holdfast.codex.failures import (
    CodexContextExhausted,
    CodexSandboxFailed,
    ModelAuth,
    ModelLimited,
    ModelMissing,
    ModelQuotaSpent,
    ModelRefused,
    ModelUnavailable,
    PolicyRefused,
    TurnFailed,
)
from holdfast.codex.model import CompletedTurn
from holdfast.codex.wire.generated import (
    AgentMessageThreadItem,
    CodexErrorKind,
    CommandExecutionThreadItem,
    FileChangeThreadItem,
    FileUpdateChange,
    ItemCompletedNotification,
    ItemStartedNotification,
    McpToolCallThreadItem,
    ThreadItem,
    ThreadTokenUsage,
    ThreadTokenUsageUpdatedNotification,
    TurnCompletedNotification,
    TurnError,
    TurnStartedNotification,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import cause_of
from holdfast.failures import Failure

# What a failed turn failed of: by the server's own names and statuses, never by its text.

_REASON_MAX = 500
_BY_KIND: dict[CodexErrorKind, Callable[..., Failure]] = {
    CodexErrorKind.CONTEXT_WINDOW_EXCEEDED: CodexContextExhausted,
    CodexErrorKind.SESSION_BUDGET_EXCEEDED: ModelQuotaSpent,
    CodexErrorKind.USAGE_LIMIT_EXCEEDED: ModelQuotaSpent,
    CodexErrorKind.RATE_LIMIT_EXCEEDED: ModelLimited,
    CodexErrorKind.FLEX_UNAVAILABLE: ModelUnavailable,
    CodexErrorKind.SERVER_OVERLOADED: ModelUnavailable,
    CodexErrorKind.POLICY_CAPACITY_UNAVAILABLE: ModelUnavailable,
    CodexErrorKind.MODEL_NOT_FOUND: ModelMissing,
    CodexErrorKind.CYBER_POLICY: PolicyRefused,
    CodexErrorKind.MISALIGNMENT_POLICY_VIOLATION: PolicyRefused,
    CodexErrorKind.TOO_MANY_DENIALS: PolicyRefused,
    CodexErrorKind.INTERNAL_SERVER_ERROR: ModelUnavailable,
    CodexErrorKind.UNAUTHORIZED: ModelAuth,
    CodexErrorKind.BAD_REQUEST: ModelRefused,
    CodexErrorKind.THREAD_ROLLBACK_FAILED: TurnFailed,
    CodexErrorKind.SANDBOX_ERROR: CodexSandboxFailed,
    CodexErrorKind.OTHER: TurnFailed,
    CodexErrorKind.HTTP_CONNECTION_FAILED: ModelUnavailable,
    CodexErrorKind.RESPONSE_STREAM_CONNECTION_FAILED: ModelUnavailable,
    CodexErrorKind.RESPONSE_STREAM_DISCONNECTED: ModelUnavailable,
    CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS: ModelUnavailable,
    CodexErrorKind.ACTIVE_TURN_NOT_STEERABLE: TurnFailed,
}
_BY_STATUS: dict[int, Callable[..., Failure]] = {
    401: ModelAuth,
    403: ModelAuth,
    404: ModelMissing,
    429: ModelLimited,
}
# These say only that a connection failed; the status behind it, where there is one, says why.
_WRAPPERS = {
    CodexErrorKind.HTTP_CONNECTION_FAILED,
    CodexErrorKind.RESPONSE_STREAM_CONNECTION_FAILED,
    CodexErrorKind.RESPONSE_STREAM_DISCONNECTED,
    CodexErrorKind.RESPONSE_TOO_MANY_FAILED_ATTEMPTS,
}
assert _BY_KIND.keys() == set(CodexErrorKind), "every kind has a failure"


def failure_of(error: TurnError) -> Failure:
    """Name what a turn failed of."""
    cause = cause_of(error.codex_error_info)
    made = _BY_KIND[cause.kind]
    if cause.kind in _WRAPPERS and cause.http_status is not None:
        made = _BY_STATUS.get(cause.http_status, made)
    reason = error.message if error.additional_details is None else error.additional_details
    return made(reason=reason[:_REASON_MAX], http_status=cause.http_status).during("codex.turn")


ENDED_MAX = 256  # turns whose end is remembered, to know news of them that comes late


class TurnTracker:
    """Which turn of a thread is active, what it started, and which file changes wait for approval.

        none ──turn/start answered──▶ asked for ──turn/started──▶ begun ──turn/completed──▶ none

    Answers and news may come in any order, and a turn ends once: whatever comes of it afterwards
    does not make it active again.
    """

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.active: str | None = None
        self.seen = 0  # turns that the server said it had started
        self.has_begun = False  # the active one: asked for and answered is not yet begun
        self.unseen: str | None = None  # was active when news ceased: it may still run
        self._ended: dict[str, None] = {}
        self._is_over = False
        self._changes: dict[str, tuple[FileUpdateChange, ...]] = {}
        self._calls: dict[str, tuple[str, object]] = {}  # of MCP tools: item → server, arguments
        self._commands: dict[str, set[str]] = {}  # turn → items

    def take(self, event: WireMessage) -> None:
        """Learn from one event of the thread."""
        match event:
            case TurnStartedNotification(turn=turn) if turn.id not in self._ended:
                self.active, self.has_begun = turn.id, True
                self.seen += 1
            case _ if is_end(event):
                self._changes.clear()
                self._calls.clear()
                self._end(turn_of(event) or self.active)
            case ItemStartedNotification(item=FileChangeThreadItem(id=id_, changes=changes)):
                self._changes[id_] = changes
            case ItemCompletedNotification(item=FileChangeThreadItem(id=id_)):
                self._changes.pop(id_, None)
            case ItemStartedNotification(item=McpToolCallThreadItem() as call):
                self._calls[call.id] = (call.server, call.arguments)
            case ItemCompletedNotification(item=McpToolCallThreadItem(id=id_)):
                self._calls.pop(id_, None)
            case ItemStartedNotification(item=CommandExecutionThreadItem(id=id_), turn_id=turn_id):
                self._commands.setdefault(turn_id, set()).add(id_)
                while len(self._commands) > ENDED_MAX:
                    del self._commands[next(iter(self._commands))]
            case _:
                pass

    def started(self, turn: str) -> None:
        """Learn from the answer to `turn/start`, which may come after the turn's own news."""
        if turn != self.active and turn not in self._ended and not self._is_over:
            self.active, self.has_begun = turn, False

    def found(self, turn: str) -> None:
        """Learn of a turn that began before this connection, unless its end came first."""
        self.started(turn)
        self.has_begun = self.active is not None

    def give_up(self, turn: str) -> None:
        """Take a turn for ended although its end never came: the server does not run it."""
        self._end(turn)

    def end(self) -> None:
        """Learn that no news will follow, whatever an answer that came before still says."""
        self._is_over = True
        self.unseen = self.active or self.unseen
        self.active = None

    def open(self) -> None:
        """Learn that news comes again, after an end."""
        self._is_over = False
        self.unseen = None

    def has_ended(self, turn: str) -> bool:
        """Whether the end of a turn was seen."""
        return turn in self._ended

    def changes_of(self, item: str) -> tuple[FileUpdateChange, ...]:
        """What a file change that waits would do: the server says so before it asks."""
        return self._changes.get(item, ())

    def tool_call_of(self, server: str, arguments: object) -> str:
        """The item of a call that runs, which an approval names by what it is only; or empty."""
        call = (server, arguments)
        return next((item for item, each in self._calls.items() if each == call), "")

    def commands_of(self, turn: str) -> frozenset[str]:
        """The items of the commands that a turn started, as far as this connection saw it."""
        return frozenset(self._commands.get(turn, ()))

    def _end(self, turn: str | None) -> None:
        if turn is not None:
            self._ended[turn] = None
            while len(self._ended) > ENDED_MAX:
                del self._ended[next(iter(self._ended))]
        if self.active == turn:
            self.active = None


class TurnCollector:
    """What a turn leaves, gathered from its events: finished items only, never deltas."""

    def __init__(self) -> None:
        self._items: list[ThreadItem] = []
        self._usage: ThreadTokenUsage | None = None

    def take(self, event: WireMessage) -> CompletedTurn | None:
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
                return CompletedTurn(turn.status, text, tuple(self._items), self._usage, error)
            case _:
                pass
        return None
