"""What people who use Codex through us hold in their hands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.codex.wire.generated import FileUpdateChange, ThreadItem, ThreadTokenUsage
from holdfast.codex.wire.generated import ToolRequestUserInputQuestion as Question
from holdfast.codex.wire.message import WireMessage
from holdfast.failures import Failure


class ApprovalDecision(StrEnum):
    """What a person, or a policy in their place, says to an approval."""

    ACCEPT = "accept"
    ACCEPT_FOR_SESSION = "acceptForSession"
    DECLINE = "decline"
    CANCEL = "cancel"  # decline, and end the turn


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandApproval:
    """Codex asks whether it may run a command."""

    thread: str
    turn: str
    item: str
    command: str
    cwd: str
    reason: str
    host: str = ""  # what it wants to reach, if it asks for the network


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChangeApproval:
    """Codex asks whether it may change files."""

    thread: str
    turn: str
    item: str
    reason: str
    changes: tuple[FileUpdateChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsApproval:
    """Codex asks for more permissions than it has."""

    thread: str
    turn: str
    item: str
    reason: str
    cwd: str
    permissions: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApproval:
    """Codex asks whether it may call a tool of an MCP server."""

    thread: str
    turn: str
    item: str  # empty where the call cannot be told from others
    server: str
    reason: str  # a question in Codex's words, which name the tool
    arguments: object


@dataclass(frozen=True, slots=True, kw_only=True)
class InputApproval:
    """Codex asks the person questions."""

    thread: str
    turn: str
    item: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class InputReply:
    """The answers to Codex's questions, by the id of each question."""

    answers: Mapping[str, tuple[str, ...]]


Approval = CommandApproval | FileChangeApproval | PermissionsApproval | ToolApproval | InputApproval
Hook = Callable[[Approval], Awaitable[ApprovalDecision | InputReply]]


class UnknownEvent(WireMessage, frozen=True):
    """News that this version does not know, or cannot read."""

    method: str
    params: object = None


class EventsDropped(WireMessage, frozen=True):
    """`count` deltas were dropped because they were not read in time; items arrive complete."""

    count: int


Event = WireMessage


@dataclass(frozen=True, slots=True)
class CompletedTurn:
    """How a turn ended, and what it left: its last message, all its items, what it used."""

    status: str  # completed, interrupted or failed
    text: str
    items: tuple[ThreadItem, ...]
    usage: ThreadTokenUsage | None
    error: Failure | None


class ConnectionState(StrEnum):
    """Where a connection stands."""

    CONNECTED = "connected"
    CRASHED = "crashed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """Whether the server answers, and if not, why."""

    healthy: bool
    reason: str = ""
    failure: Failure | None = field(default=None, compare=False)
