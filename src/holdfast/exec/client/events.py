"""Reorder the events of a process, detect gaps, and decode messages of the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pybase64

import holdfast.exec.protocol as wire
from holdfast.exec.failures import (
    FileFailed,
    FileMissing,
    HttpFailed,
    ProcessBroken,
    ProcessExists,
    ProcessUnknown,
    ReplayGap,
    RequestInvalid,
    SessionAttached,
    SessionExpired,
)
from holdfast.exec.model import Closed, Event, Exited, Output, Page
from holdfast.failures import Failure
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse

# An exit and a close: what a page does not show in its place.
_HOLES_MAX = 2


class _EventBuffer:
    """Events by sequence number, bounded in number and bytes."""

    def __init__(self, *, items_max: int, bytes_max: int) -> None:
        self._items_max, self._bytes_max = items_max, bytes_max
        self._bytes = 0
        self.events: dict[int, Event] = {}

    @property
    def has_room(self) -> bool:
        return len(self.events) < self._items_max and self._bytes < self._bytes_max

    def put(self, event: Event) -> None:
        self.events[event.seq] = event
        self._bytes += _size(event)

    def pop(self, seq: int) -> Event:
        event = self.events.pop(seq)
        self._bytes -= _size(event)
        return event


class EventSequence:
    """Passes on the events of one process exactly once and in order, in bounded memory.

    Events arrive from two overlapping sources: notifications, in any order, and pages, which omit
    the sequence numbers of exit and close. An event without room is dropped, because it can be read
    again: the caller reads while it `is_behind` and `has_room`. Early events have a buffer of their
    own, so that they never displace the ones that they wait for.

        taken ≤ known ≤ told: passed on · known without a gap · heard of at all
    """

    def __init__(
        self,
        process: str,
        *,
        held_max: int = 4096,
        held_bytes_max: int = 1024 * 1024,
        after: int = 0,
    ) -> None:
        """Start `after` a sequence number."""
        self.process = process
        self._ready = _EventBuffer(items_max=held_max, bytes_max=held_bytes_max)
        self._early = _EventBuffer(items_max=held_max, bytes_max=held_bytes_max)
        self._exit: Exited | None = None
        self._closed_seq: int | None = None
        # The last page was not the last that there is.
        self._may_have_more = False
        self.taken = self.known = self.told = after
        self.status: int | None = None
        # It has ended, and there is no status.
        self.is_lost = False
        self._has_forgotten = False  # something found no room

    @property
    def is_behind(self) -> bool:
        """Whether an event was announced, or may be retained, that is not known in order."""
        return not self.is_complete and (self.told > self.known or self._may_have_more)

    @property
    def must_read(self) -> bool:
        """Whether no notification will bring what is missing: it was dropped, or a page was
        short.
        """
        return self.is_behind and (self._has_forgotten or self._may_have_more)

    @property
    def has_room(self) -> bool:
        """Whether the buffer for the reader has room."""
        return self._ready.has_room

    @property
    def is_complete(self) -> bool:
        """Whether all events to the close are known: the server is not needed any more."""
        return self._closed_seq is not None and self.known >= self._closed_seq

    @property
    def is_finished(self) -> bool:
        """Whether all events to the close were passed on."""
        return self.is_complete and self.taken == self.known

    def live(self, event: Event) -> None:
        """Take one notification."""
        self.told = max(self.told, event.seq)
        place = self._ready if event.seq == self.known + 1 else self._early
        if not isinstance(event, Output) or place.has_room:
            self._hold(event)
        elif event.seq > self.known:
            self._has_forgotten = True
        self._advance()

    def replay(self, page: Page) -> None:
        """Take a page after `known`; raises `ReplayGap` if the server dropped part of it."""
        self.told = max(self.told, page.next_seq - 1)
        self._may_have_more = not page.is_whole
        if page.is_lost:
            self.is_lost = True
        elif page.status is not None:
            self.status = page.status
        chunks: dict[int, Event] = {chunk.seq: chunk for chunk in page.chunks}
        ends = self._ends(page, self._holes(page, chunks))
        if self.has_room:
            for event in (*chunks.values(), *ends):
                self._hold(event)
        self._advance()

    def take(self) -> list[Event]:
        """Return all events that are known in order and not yet passed on."""
        ready = [self._ready.pop(seq) for seq in range(self.taken + 1, self.known + 1)]
        self.taken = self.known
        return ready

    def _hold(self, event: Event) -> None:
        if event.seq <= self.known or event.seq in self._early.events:
            return
        self._early.put(event)
        if isinstance(event, Exited):
            self._exit, self.is_lost = event, event.is_lost
            self.status = None if event.is_lost else event.status
        elif isinstance(event, Closed):
            self._closed_seq = event.seq

    def _advance(self) -> None:
        while self.known + 1 in self._early.events:
            self.known += 1
            self._ready.put(self._early.pop(self.known))
        self._has_forgotten = self._has_forgotten and self.is_behind

    def _holes(self, page: Page, chunks: Mapping[int, Event]) -> list[int]:
        """Return the sequence numbers that a page covers but does not contain."""
        after = range(self.known + 1, page.next_seq)
        present = sum(seq in after for seq in chunks.keys() | self._early.events.keys())
        # Before counting what a liar may make endless.
        if len(after) - present > _HOLES_MAX:
            raise self._gap(self.known + 1, chunks)
        return [seq for seq in after if seq not in chunks and seq not in self._early.events]

    def _ends(self, page: Page, holes: list[int]) -> list[Event]:
        """Assign exit and close to free sequence numbers; raises `ReplayGap` if others remain."""
        ends: list[Event] = []
        if page.closed and holes and holes[-1] == page.next_seq - 1:
            ends.append(Closed(holes.pop()))
        if holes and page.status is not None and self._exit is None:
            is_certain = len(holes) == 1 and holes[0] >= page.first_retained
            if is_certain:
                end = Exited(holes.pop(), page.status, page.sandbox_denied, page.is_lost)
                ends.append(end)
        if holes:
            raise self._gap(holes[0], {chunk.seq: chunk for chunk in page.chunks})
        return ends

    def _gap(self, expected: int, chunks: Mapping[int, Event]) -> ReplayGap:
        later = [seq for seq in chunks.keys() | self._early.events.keys() if seq > expected]
        oldest = min(later, default=self.told + 1)
        return ReplayGap(process=self.process, expected=expected, oldest=oldest)


def _size(event: Event) -> int:
    return len(event.data) if isinstance(event, Output) else 0


@dataclass(frozen=True, slots=True)
class BodyPiece:
    """One piece of a body; the last one ends it, cleanly or with an error."""

    seq: int
    data: bytes
    is_last: bool = False
    error: str | None = None


class BodyBuffer:
    """Buffers pieces of one HTTP body, each passed on once and in order.

    `is_overrun` is set for good if more arrives than the limit.
    """

    def __init__(self, *, unread_bytes_max: int) -> None:
        self._bytes_max = unread_bytes_max
        self._unread: list[bytes] = []
        self._bytes = 0
        self._seq = 0
        self._is_ended = False
        self.total_bytes = 0
        self.is_overrun = False
        self.error: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether all pieces were passed on; `error` is set if the body is incomplete."""
        return self._is_ended and not self._unread

    def put(self, piece: BodyPiece) -> None:
        """Take the next piece; a repeated piece is ignored."""
        if self._is_ended or self.is_overrun or piece.seq <= self._seq:
            return
        if piece.seq > self._seq + 1:
            self._is_ended, self.error = True, f"piece {self._seq + 1} of the answer is missing"
            return
        self._seq = piece.seq
        self._is_ended, self.error = piece.is_last, piece.error
        if piece.data:
            self._unread.append(piece.data)
            self._bytes += len(piece.data)
            self.is_overrun = self._bytes > self._bytes_max

    def take(self) -> bytes:
        """Return all buffered bytes."""
        data = b"".join(self._unread)
        self._unread.clear()
        self._bytes = 0
        self.total_bytes += len(data)
        return data


_INVALID, _PARAMS, _INTERNAL = -32600, -32602, -32603
_NOT_FOUND, _ATTACHED = -32004, -32010
_READ = "process/read"

_read_output = msgspec.json.Decoder(wire.Output).decode
_read_exited = msgspec.json.Decoder(wire.Exited).decode
_read_closed = msgspec.json.Decoder(wire.Closed).decode
_read_delta = msgspec.json.Decoder(wire.HttpDelta).decode


def read_event(method: str, params: bytes | msgspec.Raw) -> tuple[str, Event] | None:
    """Decode a notification to process id and event; None if it is another or not valid.

    The gap that an invalid notification leaves is read again.
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


def read_piece(method: str, params: bytes | msgspec.Raw) -> tuple[str, BodyPiece] | None:
    """Decode a notification to request id and body piece; None if it is another or not valid.

    The next piece detects that one is missing.
    """
    if method != "http/request/bodyDelta":
        return None
    try:
        told = _read_delta(params)
        data = pybase64.b64decode(told.delta_base64, validate=True)
    except (msgspec.MsgspecError, ValueError):
        return None
    return told.request_id, BodyPiece(told.seq, data, told.done, told.error)


def read_page(asked: wire.ReadParams, answer: wire.ReadResult) -> Page:
    """Decode a read result; raises the failure that the server reports for the process."""
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
    """Map an error reply with a bare error code to a failure."""
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
    """Whether all later events come as notifications: a busy process cannot be read to its end."""
    return answer.has_more is False and not answer.exited
