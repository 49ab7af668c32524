"""The messages that two peers exchange."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

RequestId = int | str
ABSENT = Raw(b"")


class Notification(msgspec.Struct, frozen=True, gc=False):
    """News from the other side that asks for no answer; `params` are its bytes, not yet read."""

    method: str
    params: Raw = ABSENT
    id: UnsetType = UNSET  # a message with an id is no notification, and fails to decode as one


class Request(msgspec.Struct, frozen=True, gc=False):
    """What the other side asks of us, under an id of its own."""

    id: RequestId
    method: str
    params: Raw = ABSENT


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What the other side answered to a request of ours."""

    id: RequestId
    result: Raw


class ErrorReply(msgspec.Struct, frozen=True, gc=False):
    """The error with which the other side answered a request of ours."""

    id: RequestId
    code: int
    message: str
    data: object = None


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """Bytes that are no message; they were skipped."""

    reason: str
    size: int


@dataclass(frozen=True, slots=True)
class Unmatched:
    """An answer to no request in flight; `late` if we gave that request up before."""

    id: RequestId
    late: bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """How messages look on one wire."""

    jsonrpc: bool = False  # whether ours carry the member "jsonrpc": "2.0"
    cancel_method: str | None = None  # how to tell that an answer is no longer wanted
    cancel_key: str = "id"
    resolved_method: str | None = None  # how the peer says that its own request is settled
    resolved_key: str = "requestId"
    ping_method: str | None = None  # a request that is answered at once, whatever else runs


OWN_DIALECT = Dialect(cancel_method="$/cancel", ping_method="ping")
