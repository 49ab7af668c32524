"""Error replies of the exec protocol, and a transport that replies to malformed messages."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.exec.failures import (
    FileFailed,
    FileMissing,
    HttpFailed,
    NotIntroduced,
    ProcessExists,
    ProcessUnknown,
    RequestInvalid,
    RequestUnfit,
    SessionAttached,
    SessionExpired,
    StartCancelled,
    StartFailed,
)
from holdfast.failures import Failure, to_wire
from holdfast.rpc import Transport, WebSocketTransport
from holdfast.rpc.failures import HandshakeRepeated, MethodUnknown, ParamsInvalid
from holdfast.world.failures import DiskFull, DiskQuota

MALFORMED_ID = -1
_INVALID_REQUEST = -32600

# Where the kind alone would give another one.
_CODES: dict[type[Failure], int] = {
    MethodUnknown: -32601,
    ProcessUnknown: _INVALID_REQUEST,
    SessionAttached: -32010,
    SessionExpired: _INVALID_REQUEST,
    StartCancelled: _INVALID_REQUEST,
}
_SENTENCES: dict[type[Failure], str] = {
    FileFailed: "{reason}",
    FileMissing: "{reason}",
    HandshakeRepeated: "initialize may only be sent once per connection",
    HttpFailed: "http/request failed: {reason}",
    MethodUnknown: "exec-server stub does not implement `{method}` yet",
    NotIntroduced: "client must {step} before using {method} methods",
    ParamsInvalid: "{reason}",
    ProcessExists: "process {process} already exists",
    ProcessUnknown: "unknown process id {process}",
    RequestInvalid: "{reason}",
    RequestUnfit: "{reason}",
    SessionAttached: "session {session} is already attached to another connection",
    SessionExpired: "unknown session id {session}",
    StartCancelled: "process {process} start was cancelled",
    StartFailed: "{reason}",
}


def exec_error(failure: Failure) -> Mapping[str, object]:
    """Encode a failure as an error of this protocol, with the whole failure in `data`."""
    code = _CODES.get(type(failure), failure.kind.rpc_code)
    sentence = _SENTENCES.get(type(failure))
    message = failure.message if sentence is None else sentence.format_map(failure.details)
    return {"code": code, "message": message, "data": to_wire(failure)}


def malformed_error(reason: str) -> dict[str, object]:
    """Encode the reply to a malformed message, which has no id."""
    message = f"failed to parse JSON-RPC message: {reason}"
    return {"error": {"code": _INVALID_REQUEST, "message": message}, "id": MALFORMED_ID}


Text = bytes | tuple[bytes, ...]
"""A message, whole or in parts."""

_TEXT_MAX = 500


class _Envelope(msgspec.Struct, gc=False):
    """The members that make a message: a method, or a reply."""

    method: str | UnsetType = UNSET
    id: int | str | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(_Envelope).decode


class ErrorReplyTransport:
    """Wraps a transport; a malformed message gets an error reply with id -1, and is dropped.

    Its sender would otherwise wait for a reply for ever. Messages in parts are joined only for a
    transport that cannot send parts.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._gathering = transport if isinstance(transport, WebSocketTransport) else None

    async def receive(self) -> Sequence[bytes]:
        """Wait for valid messages; raises the failure that ended the transport."""
        while True:
            readable: list[bytes] = []
            for message in await self._transport.receive():
                reason = _complaint(message)
                if reason is None:
                    readable.append(message)
                else:
                    self._transport.offer([msgspec.json.encode(malformed_error(reason))])
            if readable:
                return readable

    async def send(self, messages: Sequence[Text]) -> None:
        """Send messages in order; waits while the other side applies backpressure."""
        if self._gathering is not None:
            await self._gathering.send(messages)
        else:
            await self._transport.send([_whole(each) for each in messages])

    def offer(self, messages: Sequence[Text]) -> bool:
        """Send messages if the buffer has room; returns whether it did."""
        if self._gathering is not None:
            return self._gathering.offer(messages)
        return self._transport.offer([_whole(each) for each in messages])

    async def aclose(self) -> None:
        await self._transport.aclose()


def _whole(message: Text) -> bytes:
    return message if isinstance(message, bytes) else b"".join(message)


def _complaint(message: bytes) -> str | None:
    try:
        envelope = _read(message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return str(error)[:_TEXT_MAX]
    if envelope.method is not UNSET or envelope.result is not UNSET or envelope.error is not UNSET:
        return None
    return "missing field `error`"


_NO_ROOM = {errno.ENOSPC: DiskFull, errno.EDQUOT: DiskQuota}
_UNFIT = {errno.EACCES, errno.EPERM, errno.EINVAL}


def file_failure(error: OSError, path: bytes) -> Failure:
    """Return the failure for an OSError."""
    reason, shown = reason_of(error), path.decode("utf-8", "backslashreplace")
    if (no_room := _NO_ROOM.get(error.errno or 0)) is not None:
        return no_room(path=shown)
    if error.errno == errno.ENOENT:
        return FileMissing(path=shown, reason=reason)
    if error.errno in _UNFIT:
        return RequestUnfit(reason=reason)
    return FileFailed(path=shown, reason=reason)


def reason_of(error: OSError) -> str:
    """Return the error text with its number, as Codex formats it."""
    return f"{error.strerror or error} (os error {error.errno or 0})"
