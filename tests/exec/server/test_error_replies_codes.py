"""The codes and sentences of this wire."""

from __future__ import annotations

import pytest

from holdfast.confine.failures import SandboxUnavailable
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
from holdfast.exec.server.error_replies import exec_error, malformed_error
from holdfast.failures import Failure, from_rpc_data
from holdfast.rpc.failures import HandshakeRepeated, MethodUnknown, ParamsInvalid, TooManyRequests

SAID: list[tuple[Failure, int, str]] = [
    (MethodUnknown(method="x/y"), -32601, "exec-server stub does not implement `x/y` yet"),
    (ParamsInvalid(method="m", reason="missing field"), -32602, "missing field"),
    (
        NotIntroduced(method="exec", step="call initialize"),
        -32600,
        "client must call initialize before using exec methods",
    ),
    (HandshakeRepeated(), -32600, "initialize may only be sent once per connection"),
    (SessionExpired(session="s"), -32600, "unknown session id s"),
    (
        SessionAttached(session="s"),
        -32010,
        "session s is already attached to another connection",
    ),
    (ProcessUnknown(process="p"), -32600, "unknown process id p"),
    (ProcessExists(process="p"), -32600, "process p already exists"),
    (StartCancelled(process="p"), -32600, "process p start was cancelled"),
    (StartFailed(command="c", reason="no such file"), -32603, "no such file"),
    (RequestInvalid(reason="argv must not be empty"), -32602, "argv must not be empty"),
    (RequestUnfit(reason="process id p is starting"), -32600, "process id p is starting"),
    (FileMissing(path="/x", reason="No such file"), -32004, "No such file"),
    (FileFailed(path="/x", reason="Is a directory"), -32603, "Is a directory"),
    (HttpFailed(url="http://x", reason="refused"), -32603, "http/request failed: refused"),
]


@pytest.mark.parametrize(("failure", "code", "message"), SAID)
def test_a_failure_is_said_as_clients_know_it(failure: Failure, code: int, message: str) -> None:
    error = exec_error(failure)

    assert (error["code"], error["message"]) == (code, message)
    assert from_rpc_data(error["data"]) == failure


@pytest.mark.parametrize(
    ("failure", "code"),
    [(SandboxUnavailable(reason="none"), -32603), (TooManyRequests(in_flight_max=1), -32001)],
)
def test_the_rest_is_said_by_its_kind(failure: Failure, code: int) -> None:
    assert exec_error(failure)["code"] == code


def test_what_cannot_be_read_is_answered_under_no_id() -> None:
    assert malformed_error("x") == {
        "error": {"code": -32600, "message": "failed to parse JSON-RPC message: x"},
        "id": -1,
    }
