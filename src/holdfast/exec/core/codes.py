"""Say on the wire what went wrong: the codes and sentences that clients know."""

from __future__ import annotations

from collections.abc import Mapping

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
from holdfast.rpc.failures import HandshakeRepeated, MethodUnknown, ParamsInvalid

MALFORMED_ID = -1
_INVALID_REQUEST = -32600

_CODES: dict[type[Failure], int] = {  # where the kind alone would give another one
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
    """Write a failure as an error of this wire, with the whole of it in the data."""
    code = _CODES.get(type(failure), failure.kind.rpc_code)
    sentence = _SENTENCES.get(type(failure))
    message = failure.message if sentence is None else sentence.format_map(failure.details)
    return {"code": code, "message": message, "data": to_wire(failure)}


def malformed_error(reason: str) -> dict[str, object]:
    """Write the answer to what cannot be read, and so has no id."""
    message = f"failed to parse JSON-RPC message: {reason}"
    return {"error": {"code": _INVALID_REQUEST, "message": message}, "id": MALFORMED_ID}
