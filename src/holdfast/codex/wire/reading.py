"""Read records from the wire, forgiving what a newer or a careless server sends.

A record that fits is read at once. One that does not is read again member by member: a member
that may be absent falls back to its default, and an item of an unknown kind becomes the foreign
member of its union. Only a record that lacks what it cannot do without is refused; in a list it is
left out.

Decision: docs/decisions/0030-codex-types-from-schema.md
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import NamedTuple, TypeGuard, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Raw
from msgspec.json import decode

from holdfast.codex.wire.generated import CodexErrorInfo, CodexErrorKind
from holdfast.codex.wire.message import WireMessage
from holdfast.rpc.failures import AnswerInvalid, ParamsInvalid

FOREIGN = "?"  # the tag that no server sends
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_EMPTY = (b"", b"null")  # what a peer may send for a record without members
_REASON_MAX = 500

M = TypeVar("M", bound=WireMessage)


def read_params(method: str, wanted: type[M], params: Raw) -> M:
    """Read what a notification or a request says, or raise `ParamsInvalid`."""
    try:
        return decode(params, type=wanted)
    except _UNREADABLE:
        pass  # most often something new, which the second reading knows how to take
    try:
        return _read_again(wanted, params)
    except _UNREADABLE as error:
        raise ParamsInvalid(method=method, reason=str(error)[:_REASON_MAX]) from error


def read_answer(method: str, wanted: type[M], result: Raw) -> M:
    """Read what a request was answered with, or raise `AnswerInvalid`."""
    try:
        return read_params(method, wanted, result)
    except ParamsInvalid as misfit:
        raise AnswerInvalid(method=method, reason=misfit.reason) from misfit.__cause__


def read_anything(method: str, result: Raw) -> object:
    """Read what a request was answered with as plain values, or raise `AnswerInvalid`."""
    try:
        return decode(result)
    except _UNREADABLE as error:
        raise AnswerInvalid(method=method, reason=str(error)[:_REASON_MAX]) from error


def _read_again(wanted: type[M], raw: Raw) -> M:
    value: object = {} if bytes(raw) in _EMPTY else decode(raw)
    return _record(value, wanted)


def _fit(value: object, wanted: object) -> object:
    """Make a value fit a type of the wire, or raise why it cannot."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        match get_origin(wanted), get_args(wanted):
            case (origin, parts) if origin in {Union, UnionType}:
                return _member(value, parts)
            case (origin, (part, _)) if origin is tuple and _is_list(value):
                return tuple(_fitting(value, part))
            case (origin, (_, part)) if origin is dict and _is_object(value):
                return {key: _fit(each, part) for key, each in value.items()}
            case _ if _is_record(wanted):
                return _record(value, wanted)
            case _:
                raise


def _fitting(values: list[object], wanted: object) -> Iterator[object]:
    """Fit each element; leave a record out that lacks what it cannot do without."""
    for each in values:
        try:
            yield _fit(each, wanted)
        except msgspec.ValidationError:
            if not _is_object(each):
                raise


def _member(value: object, parts: tuple[object, ...]) -> object:
    """Fit a value to the member of a union that its tag names, else to the foreign one."""
    tagged = {part.__struct_config__.tag: part for part in parts if _is_record(part)}
    if _is_object(value) and FOREIGN in tagged:
        foreign = tagged[FOREIGN]
        kind = str(value.get(foreign.__struct_config__.tag_field or "", ""))
        if kind in tagged and kind != FOREIGN:
            return _record(value, tagged[kind])
        return _record({**value, "kind": kind, "fields": value}, foreign)
    for part in parts:
        try:
            return _fit(value, part) if part is not type(None) else msgspec.convert(value, part)
        except msgspec.ValidationError:
            continue
    raise msgspec.ValidationError(f"{type(value).__name__} is not of the union")


def _record(value: object, wanted: type[M]) -> M:
    """Build a record from the members that fit; those that do not must be dispensable."""
    if not _is_object(value):
        raise msgspec.ValidationError(f"{wanted.__name__} is no {type(value).__name__}")
    members: dict[str, object] = {}
    for field in msgspec.structs.fields(wanted):
        if field.encode_name not in value:
            if field.required:
                raise msgspec.ValidationError(f"{wanted.__name__} lacks `{field.encode_name}`")
            continue
        try:
            members[field.name] = _fit(value[field.encode_name], field.type)
        except msgspec.ValidationError:
            if field.required:
                raise
    return wanted(**members)


def _is_record(wanted: object) -> TypeGuard[type[WireMessage]]:
    return isinstance(wanted, type) and issubclass(wanted, WireMessage)


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


# Say what a turn failed of, whatever form the server gives it.


class Cause(NamedTuple):
    """What a model failure is called, and the HTTP status behind it where there was one."""

    kind: CodexErrorKind
    name: str  # as the server said it, also where this version has no kind for it
    http_status: int | None = None


def cause_of(info: CodexErrorInfo | None) -> Cause:
    """Read an error info; one that is absent, new or odd is of the kind `other`."""
    name, http_status = "", None
    match info:
        case str():
            name = info
        case dict():
            name, details = next(iter(info.items()), ("", None))
            http_status = _http_status(details)
        case None:
            pass
    kind = CodexErrorKind(name) if name in set(CodexErrorKind) else CodexErrorKind.OTHER
    return Cause(kind, name, http_status)


def _http_status(details: object) -> int | None:
    match details:
        case {"httpStatusCode": int(status)}:
            return status
        case _:
            return None
