"""JSON form of a failure: for our protocols, HTTP bodies, events and reports.

`to_wire` returns the object of the contract (camelCase). `from_wire` reads it back and ignores
unknown fields, so that other versions and programs may add some. `to_log` returns the same details
as the fields of one log line (snake_case).

Some values have no JSON form: integers beyond 64 bits become hexadecimal strings, infinities and
NaN become words, lone surrogates are escaped, and values nested too deep are omitted. Decoding
reverses the first two where the class declares a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from math import isfinite
from types import NoneType, UnionType
from typing import TypeGuard, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from holdfast.failures.base import Circumstances, Failure, ForeignFailure, Ids, class_of
from holdfast.failures.kinds import OWN_RPC_CODE, Action, Recovery

_DEPTH_MAX = 32
_PLAIN: set[object] = {object, str, int, bool, NoneType}
_LEFT_OUT = "…"
_INT_LEAST, _INT_MOST = -(2**63), 2**64 - 1


class _Unfit(ValueError):
    """A value is not of the type that was declared for it."""


def clean(value: object, *, depth: int = 0) -> object:
    """Convert any value to JSON that every parser accepts."""
    if depth > _DEPTH_MAX:
        return _LEFT_OUT
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _clean_number(value)
    if is_list(value):
        return [clean(item, depth=depth + 1) for item in value]
    if is_object(value):
        return {_readable(name): clean(item, depth=depth + 1) for name, item in value.items()}
    return _readable(value)


def frozen(value: object, *, depth: int = 0) -> object:
    """Convert JSON lists to tuples, the form of lists in details."""
    if depth > _DEPTH_MAX:
        return _LEFT_OUT
    if is_list(value):
        return tuple(frozen(item, depth=depth + 1) for item in value)
    if is_object(value):
        return {name: frozen(item, depth=depth + 1) for name, item in value.items()}
    return value


def rebuilt(known: type[Failure], details: Mapping[str, object]) -> Failure | None:
    """Make a failure of a class from recorded details; None when they do not fit the class."""
    declared, optional = detail_types(known)
    if not declared.keys() - optional <= details.keys() <= declared.keys():
        return None
    try:
        return known(**{name: _fit(value, declared[name]) for name, value in details.items()})
    except _Unfit:
        return None


def detail_types(known: type[Failure]) -> tuple[dict[str, object], set[str]]:
    """The declared type of every detail of a class, and which of them have a default."""
    hints = get_type_hints(known)
    return {name: hints[name] for name in known.detail_names()}, known.defaults()


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether JSON would write it as a list."""
    return isinstance(value, (list, tuple))


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Whether JSON would write it as an object."""
    return isinstance(value, dict)


def _clean_number(value: int | float) -> int | float | str:
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return int(value) if _INT_LEAST <= value <= _INT_MOST else hex(value)


def _fit(value: object, declared: object) -> object:
    origin, inside = get_origin(declared), get_args(declared)
    if origin in {Union, UnionType}:
        return _fit_any(value, inside)
    if origin is tuple and isinstance(value, tuple):
        return _fit_tuple(cast("tuple[object, ...]", value), inside)  # whatever it holds, we look
    if origin is dict and is_object(value):
        return {name: _fit(item, inside[1]) for name, item in value.items()}
    if isinstance(declared, type):
        return _fit_class(value, declared)
    raise _Unfit


def _fit_class(value: object, declared: type[object]) -> object:
    if issubclass(declared, Enum):
        return _fit_member(value, declared)
    if declared is float:
        return _fit_float(value)
    if declared is int and isinstance(value, str):
        return _fit_hex(value)
    if declared not in _PLAIN or not isinstance(value, declared):
        raise _Unfit
    if declared is int and isinstance(value, bool):
        raise _Unfit
    return value


def _fit_any(value: object, choices: tuple[object, ...]) -> object:
    for choice in choices:
        try:
            return _fit(value, choice)
        except _Unfit:
            continue
    raise _Unfit


def _fit_tuple(value: tuple[object, ...], declared: tuple[object, ...]) -> tuple[object, ...]:
    if len(declared) == 2 and declared[1] is ...:
        return tuple(_fit(item, declared[0]) for item in value)
    if len(value) != len(declared):
        raise _Unfit
    return tuple(_fit(item, choice) for item, choice in zip(value, declared, strict=True))


def _fit_member(value: object, declared: type[Enum]) -> Enum:
    for member in declared:
        if member.value == value:
            return member
    raise _Unfit


def _fit_float(value: object) -> float:
    if value in {"inf", "-inf", "nan"}:
        return float(str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Unfit
    try:
        return float(value)
    except OverflowError as error:
        raise _Unfit from error


def _fit_hex(value: str) -> int:
    if not value.lstrip("-").startswith("0x"):
        raise _Unfit
    try:
        return int(value, 16)
    except ValueError as error:
        raise _Unfit from error


def _readable(value: object) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()


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
