"""The one way a failure is written down: for our protocols, HTTP bodies, events and reports.

`to_wire` gives the object of the contract (camelCase), `from_wire` reads it back, whoever wrote
it and whatever they added. `to_log` gives the same details as one log line (snake_case).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

from holdfast.failures.base import Circumstances, Failure, ForeignFailure, Ids, class_of
from holdfast.failures.details import clean, frozen, is_list, is_object, rebuilt
from holdfast.failures.kinds import OWN_RPC_CODE, Action, Recovery

Json = dict[str, object]
_Member = TypeVar("_Member", bound=Enum)
_SECONDS_MOST = 253_402_300_799  # the last one that a date with four digits for the year can name
_IDS = {
    "requestId": "request_id",
    "runId": "run_id",
    "taskId": "task_id",
    "projectId": "project_id",
    "sessionId": "session_id",
    "runnerType": "runner_type",
    "provider": "provider",
    "model": "model",
}


def to_wire(failure: Failure) -> Json:
    """Write a failure as the JSON object of the contract."""
    foreign = failure if isinstance(failure, ForeignFailure) else None
    wire: Json = {
        "code": foreign.foreign_code if foreign else failure.code,
        "category": (foreign.foreign_code if foreign else failure.code).partition("_")[0],
        "phase": failure.phase,
        "title": foreign.foreign_title if foreign else failure.title,
        "message": foreign.foreign_message if foreign else failure.message,
        "userMessage": failure.user_message,
        "recovery": failure.recovery.value,
        "retryable": failure.retryable,
        "actions": [action.value for action in failure.actions],
        "details": foreign.foreign_details if foreign else failure.details,
        "timestamp": _iso(failure.timestamp),
    }
    if failure.retry_after is not None:
        wire["retryAfter"] = failure.retry_after
    known = failure.ids.known()
    wire |= {name: known[ours] for name, ours in _IDS.items() if ours in known}
    return {name: clean(value) for name, value in wire.items()}


def from_wire(wire: Mapping[str, object]) -> Failure:
    """Read a failure that someone wrote; what we do not know becomes a ForeignFailure."""
    code, details = _text(wire.get("code"), "FOREIGN"), _details(wire.get("details"))
    circumstances = Circumstances(
        phase=_text(wire.get("phase"), ""),
        recovery=_member(Recovery, wire.get("recovery")) or Recovery.NONE,
        retryable=wire.get("retryable") is True,
        actions=tuple(
            action for word in _words(wire.get("actions")) if (action := _member(Action, word))
        ),
        retry_after=_seconds(wire.get("retryAfter")),
        ids=Ids(**{ours: _known_text(wire.get(name)) for name, ours in _IDS.items()}),
    )
    known = class_of(code) or ForeignFailure
    failure = None if known is ForeignFailure else rebuilt(known, details)
    if failure is None:
        failure = ForeignFailure(
            foreign_code=code,
            foreign_title=_text(wire.get("title"), code),
            foreign_message=_text(wire.get("message"), code),
            foreign_user_message=_text(wire.get("userMessage"), _text(wire.get("message"), code)),
            foreign_details=details,
        )
    return failure.restored(circumstances, _epoch(wire.get("timestamp")))


def to_log(failure: Failure) -> Json:
    """Write a failure as the fields of one log line; the logger adds level and its own time."""
    wire = to_wire(failure)
    return {
        "error_code": wire["code"],
        "error_category": wire["category"],
        "phase": wire["phase"],
        "recovery": wire["recovery"],
        "retryable": wire["retryable"],
        "message": wire["message"],
        "details": wire["details"],
        **failure.ids.known(),
    }


def to_rpc_error(failure: Failure, *, code: int = OWN_RPC_CODE) -> Json:
    """Write a failure as a JSON-RPC error; a foreign wire passes the code it wants to see."""
    wire = to_wire(failure)
    return {"code": code, "message": wire["message"], "data": wire}


def from_rpc_data(data: object) -> Failure | None:
    """Read the failure that rides in the data of a JSON-RPC error, if one does."""
    return from_wire(data) if is_object(data) and {"code", "recovery"} <= data.keys() else None


def _details(value: object) -> Json:
    return {name: frozen(item) for name, item in value.items()} if is_object(value) else {}


def _words(value: object) -> list[str]:
    return [word for word in value if isinstance(word, str)] if is_list(value) else []


def _text(value: object, otherwise: str) -> str:
    return value if isinstance(value, str) and value else otherwise


def _known_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(value: object) -> float | None:
    """Read a wait; what is not a number that one can wait for counts as absent."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _SECONDS_MOST else None


def _member(kind: type[_Member], value: object) -> _Member | None:
    return next((member for member in kind if member.value == value), None)


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def _epoch(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
    except ValueError:
        return None
    seconds = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    return seconds if 0 <= seconds <= _SECONDS_MOST else None
