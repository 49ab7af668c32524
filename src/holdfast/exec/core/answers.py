"""Read what an exec-server says: news, pages and refusals, trusting none of it."""

from __future__ import annotations

import msgspec
import pybase64

import holdfast.exec.wire as wire
from holdfast.exec.core.body import Piece
from holdfast.exec.failures import (
    FileFailed,
    FileMissing,
    HttpFailed,
    ProcessBroken,
    ProcessExists,
    ProcessUnknown,
    RequestInvalid,
    SessionAttached,
    SessionExpired,
)
from holdfast.exec.model import Closed, Event, Exited, Output, Page
from holdfast.failures import Failure
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse

_INVALID, _PARAMS, _INTERNAL = -32600, -32602, -32603
_NOT_FOUND, _ATTACHED = -32004, -32010
_READ = "process/read"

_read_output = msgspec.json.Decoder(wire.Output).decode
_read_exited = msgspec.json.Decoder(wire.Exited).decode
_read_closed = msgspec.json.Decoder(wire.Closed).decode
_read_delta = msgspec.json.Decoder(wire.HttpDelta).decode


def read_event(method: str, params: bytes | msgspec.Raw) -> tuple[str, Event] | None:
    """The process that a notification is about, and its event; None if it is none that we know.

    What is unreadable is skipped too: the hole that it leaves is read again.
    """
    try:
        match method:
            case "process/output":
                told = _read_output(params)
                data = pybase64.b64decode(told.chunk, validate=True)
                return told.process_id, Output(told.seq, told.stream, data)
            case "process/exited":
                end = _read_exited(params)
                exited = Exited(end.seq, end.exit_code, end.sandbox_denied, end.lost is True)
                return end.process_id, exited
            case "process/closed":
                last = _read_closed(params)
                return last.process_id, Closed(last.seq)
            case _:
                return None
    except (msgspec.MsgspecError, ValueError):
        return None


def read_piece(method: str, params: bytes | msgspec.Raw) -> tuple[str, Piece] | None:
    """The request that a notification is about, and the piece of its body; None if it is none.

    What is unreadable is skipped: the next piece finds that one is missing.
    """
    if method != "http/request/bodyDelta":
        return None
    try:
        told = _read_delta(params)
        data = pybase64.b64decode(told.delta_base64, validate=True)
    except (msgspec.MsgspecError, ValueError):
        return None
    return told.request_id, Piece(told.seq, data, told.done, told.error)


def read_page(asked: wire.ReadParams, answer: wire.ReadResult) -> Page:
    """What a read answered; raise what the server says went wrong with the process."""
    is_lost = answer.lost is True
    if answer.failure is not None and not is_lost:
        raise ProcessBroken(process=asked.process_id, reason=answer.failure)
    try:
        chunks = tuple(
            Output(chunk.seq, chunk.stream, pybase64.b64decode(chunk.chunk, validate=True))
            for chunk in answer.chunks
        )
    except ValueError as error:
        raise AnswerInvalid(method=_READ, reason=str(error)) from error
    if answer.exited and answer.exit_code is None:
        raise AnswerInvalid(method=_READ, reason="it has exited, and has no exit code")
    return Page(
        chunks,
        answer.next_seq,
        answer.exit_code if answer.exited else None,
        answer.closed,
        answer.sandbox_denied,
        answer.first_retained_seq or 0,
        is_whole=asked.max_bytes is None or not chunks or _is_newest(answer),
        is_lost=is_lost,
    )


def refused(error: ErrorResponse, *, subject: str) -> Failure:
    """What a refusal means, where the server gave only the code of its wire."""
    room, code = error.method.partition("/")[0], error.error_code
    known: dict[tuple[str, int], Failure] = {
        ("initialize", _ATTACHED): SessionAttached(session=subject),
        ("initialize", _INVALID): SessionExpired(session=subject),
        ("process/start", _INVALID): ProcessExists(process=subject),
        ("process", _INVALID): ProcessUnknown(process=subject),
        ("http", _PARAMS): RequestInvalid(reason=error.error_message),
        ("http", _INTERNAL): HttpFailed(url=subject, reason=error.error_message),
        ("fs", _NOT_FOUND): FileMissing(path=subject, reason=error.error_message),
    }
    failure = known.get((error.method, code)) or known.get((room, code))
    if failure is None and room == "fs":
        return FileFailed(path=subject, reason=error.error_message)
    return failure or error


def _is_newest(answer: wire.ReadResult) -> bool:
    """Whether all after a page comes as news: who never pauses cannot be read to the end."""
    return answer.has_more is False and not answer.exited
