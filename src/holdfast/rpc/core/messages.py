"""Read and write single messages, trusting nothing that arrives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.rpc.failures import Unencodable
from holdfast.rpc.model import (
    ABSENT,
    Answer,
    Dialect,
    Malformed,
    Notification,
    Refusal,
    Request,
    RequestId,
)

Message = Notification | Request | Answer | Refusal | Malformed

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_TEXT_MAX = 2000
_ID_BITS_MAX = 64  # an id is echoed in answers: bound what a stranger makes us repeat
_HAS_ID = b'{"id"'  # what most answers begin with, and no notification does
_JSONRPC = b'{"jsonrpc":"2.0",'


class _Envelope(msgspec.Struct, gc=False):
    """Any message, sorted out by which members it has."""

    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = ABSENT
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Error(msgspec.Struct, gc=False):
    code: int = 0
    message: str = ""
    data: object = None


_read_notification = msgspec.json.Decoder(Notification).decode
_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_error = msgspec.json.Decoder(_Error).decode
_write = msgspec.json.Encoder().encode


def read(message: bytes) -> Message:
    """Sort out one message; never raises, whatever the bytes are."""
    if not message.startswith(_HAS_ID):
        try:
            return _read_notification(message)  # by far the most frequent: worth a path of its own
        except UNREADABLE:
            pass
    try:
        envelope = _read_envelope(message)
    except UNREADABLE as error:
        return Malformed(str(error)[:_TEXT_MAX], len(message))
    return _sorted(envelope, len(message))


def _sorted(envelope: _Envelope, size: int) -> Message:
    id_ = envelope.id
    if id_ is UNSET or id_ is None:
        return Malformed("an answer, or a request, without an id", size)
    if _id_size(id_) > _ID_BITS_MAX * 4:
        return Malformed("an id that is too long", size)
    if envelope.method is not UNSET:
        return Request(id_, envelope.method, envelope.params)
    if envelope.result is not UNSET:
        return Answer(id_, envelope.result)
    if envelope.error is not UNSET:
        return _refusal(id_, envelope.error)
    return Malformed("neither a request nor an answer", size)


def _id_size(id_: RequestId) -> int:
    return id_.bit_length() if isinstance(id_, int) else len(id_)


def _refusal(id_: RequestId, raw: Raw) -> Refusal:
    """Read an error however odd it is: its request must end, one way or another."""
    try:
        error = _read_error(raw)
    except UNREADABLE:
        return Refusal(id_, 0, bytes(raw)[:_TEXT_MAX].decode("utf-8", "replace"))
    return Refusal(id_, error.code, error.message, error.data)


def write_request(id_: RequestId, method: str, params: object, dialect: Dialect) -> bytes:
    """Write a request; params of None are left out."""
    return _written({"id": id_, "method": method}, method, params, dialect)


def write_notification(method: str, params: object, dialect: Dialect) -> bytes:
    """Write a notification; params of None are left out."""
    return _written({"method": method}, method, params, dialect)


def write_answer(id_: RequestId, result: object, dialect: Dialect) -> bytes:
    """Write the answer to a request."""
    body = _encoded({"id": id_, "result": result}, "result")
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def write_refusal(id_: RequestId, error: Mapping[str, object], dialect: Dialect) -> bytes:
    """Write the error that answers a request."""
    body = _encoded({"error": error, "id": id_}, "error")
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def _written(head: dict[str, object], method: str, params: object, dialect: Dialect) -> bytes:
    if params is not None:
        head["params"] = params
    body = _encoded(head, method)
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def _encoded(value: dict[str, object], method: str) -> bytes:
    """Encode, refusing what a strict reader would silently drop: a request without an answer."""
    try:
        body = _write(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Unencodable(method=method, reason=str(error)[:_TEXT_MAX]) from error
    if b"null" in body and _has_no_number(msgspec.to_builtins(value, enc_hook=_passed_over)):
        raise Unencodable(method=method, reason="NaN and infinity are not JSON numbers")
    return body


def _passed_over(_: object) -> None:
    """What is JSON already has been looked at by whoever wrote it."""


def _has_no_number(value: object) -> bool:
    """Whether a float in it is none; the encoder would write null in its place."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if _is_mapping(item):
            stack.extend(item.values())
        elif _is_list(item):
            stack.extend(item)
    return False


def _is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, (list, tuple, set, frozenset))
