"""What is worth knowing about a running Holdfast: levels, events and records.

Events never carry parameters, prompts or file contents; a method and a size say enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import ClassVar

import msgspec

from holdfast.failures import Ids


class Level(IntEnum):
    """How much a record matters."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


class ConnectionStopReason(StrEnum):
    """Why a connection ended."""

    NORMAL = "normal"
    CRASHED = "crashed"
    KILLED = "killed"


class ResultKind(StrEnum):
    """How a request was answered."""

    OK = "ok"
    ERROR = "error"
    LOST = "lost"
    CANCELLED = "cancelled"


class TelemetryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; its tag is the name under which it is known everywhere."""

    level: ClassVar[Level] = Level.INFO

    ids: Ids = Ids()

    @property
    def name(self) -> str:
        """The name under which it is known everywhere."""
        return str(self.__struct_config__.tag)

    def fields(self) -> dict[str, object]:
        """What it says beyond its name and its ids."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "ids"}


class ConnectionStarted(TelemetryEvent, frozen=True, kw_only=True, tag="connection.start"):
    """A connection was made and has introduced itself."""

    peer: str


class ConnectionStopped(TelemetryEvent, frozen=True, kw_only=True, tag="connection.stop"):
    """A connection ended."""

    peer: str
    reason: ConnectionStopReason
    duration: float


class ConnectionFaulted(TelemetryEvent, frozen=True, kw_only=True, tag="connection.error"):
    """A connection met something that it could not use, and went on."""

    level: ClassVar[Level] = Level.WARNING

    peer: str
    error_code: str


class RequestStarted(TelemetryEvent, frozen=True, kw_only=True, tag="request.start"):
    """A request was sent."""

    level: ClassVar[Level] = Level.DEBUG

    method: str
    size: int


class RequestStopped(TelemetryEvent, frozen=True, kw_only=True, tag="request.stop"):
    """A request has its answer, or will have none."""

    level: ClassVar[Level] = Level.DEBUG

    method: str
    duration: float
    result: ResultKind


class RequestTimedOutEvent(TelemetryEvent, frozen=True, kw_only=True, tag="request.timeout"):
    """A request was not answered within its limit."""

    level: ClassVar[Level] = Level.WARNING

    method: str
    limit: float


class NotificationsReceived(TelemetryEvent, frozen=True, kw_only=True, tag="notification.received"):
    """So many notifications of one method arrived since it was last said."""

    level: ClassVar[Level] = Level.DEBUG

    method: str
    count: int = 1


class NotificationUnknown(TelemetryEvent, frozen=True, kw_only=True, tag="notification.unknown"):
    """A notification with an unknown method arrived."""

    level: ClassVar[Level] = Level.DEBUG

    method: str


class ApprovalRequested(TelemetryEvent, frozen=True, kw_only=True, tag="approval.requested"):
    """The other side asked whether it may do something."""

    method: str


class ApprovalCompleted(TelemetryEvent, frozen=True, kw_only=True, tag="approval.completed"):
    """An approval was decided."""

    method: str
    decision: str
    duration: float


class ApprovalTimedOut(TelemetryEvent, frozen=True, kw_only=True, tag="approval.timeout"):
    """An approval had no decision before its deadline and was declined."""

    level: ClassVar[Level] = Level.WARNING

    method: str
    limit: float


class TelemetryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What sinks are handed: already without secrets."""

    at: float
    level: Level
    name: str
    fields: Mapping[str, object]
    failure: Mapping[str, object] | None = None  # the whole of it, where the record is one

    def line(self) -> dict[str, object]:
        """The keys and values of one log line."""
        stamp = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="microseconds")
        head = {"timestamp": stamp, "level": self.level.name.lower(), "event": self.name}
        return {**self.fields, **head}
