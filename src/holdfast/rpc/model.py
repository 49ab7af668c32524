"""Messages of JSON-RPC as two peers exchange them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType

RequestId = int | str
ABSENT = Raw(b"")


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A message without an id, which gets no reply; `params` holds its JSON bytes undecoded."""

    method: str
    params: Raw = ABSENT
    id: UnsetType = UNSET  # a message with an id is no notification, and fails to decode as one


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request of the other side under its own id; `params` holds its JSON bytes undecoded."""

    id: RequestId
    method: str
    params: Raw = ABSENT


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A successful reply to a request of ours."""

    id: RequestId
    result: Raw


class ErrorReply(msgspec.Struct, frozen=True, gc=False):
    """An error reply to a request of ours."""

    id: RequestId
    code: int
    message: str
    data: object = None


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """Bytes that are not a valid message; the peer skipped them."""

    reason: str
    size: int


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A reply that matches no request in flight; `late` if that request was given up before."""

    id: RequestId
    late: bool


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between the JSON-RPC wires that a connection supports."""

    jsonrpc: bool = False  # whether ours carry the member "jsonrpc": "2.0"
    cancel_method: str | None = None  # how to tell that an answer is no longer wanted
    cancel_key: str = "id"
    resolved_method: str | None = None  # how the peer says that its own request is settled
    resolved_key: str = "requestId"
    ping_method: str | None = None  # a request that is answered at once, whatever else runs


OWN_DIALECT = Dialect(cancel_method="$/cancel", ping_method="ping")
