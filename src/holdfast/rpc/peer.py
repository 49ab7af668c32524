"""JSON-RPC message codec and the request state of one peer, without I/O (sans-I/O, like h11).

Theory of operation. Each of our requests moves through these states:

    request() ──▶ in flight ──Answer / ErrorReply──▶ settled
                     │
                  give_up() (timeout, cancellation)
                     ▼
                  given up ──late reply──▶ Unmatched(late=True), forgotten

and each request of the other side: received ──▶ open ──answer() / refuse()──▶ settled.

Invariants: ids of our requests are never reused; a request is in at most one state; an id of the
other side that is still open is refused as malformed; `receive` never raises on input. Invalid
messages and unmatched replies are counted and returned as oddities, and `malformed_max` of them in
a row make the peer unhealthy. The owner moves bytes and keeps time: deadlines are only stored here,
and `overdue` reports them. Memory is bounded by `PeerLimits`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.rpc.failures import (
    HandshakeMissing,
    HandshakeRepeated,
    TooManyRequests,
    Unencodable,
    VersionRefused,
)
from holdfast.rpc.model import (
    ABSENT,
    Answer,
    Dialect,
    ErrorReply,
    MalformedMessage,
    Notification,
    Request,
    RequestId,
    Unmatched,
)

Message = Notification | Request | Answer | ErrorReply | MalformedMessage

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_TEXT_MAX = 2000
# An id is echoed in answers: bound what a stranger makes us repeat.
_ID_BITS_MAX = 64
# What most answers begin with, and no notification does.
_HAS_ID = b'{"id"'
_JSONRPC = b'{"jsonrpc":"2.0",'


class _Envelope(msgspec.Struct, gc=False):
    """Any message; its members decide whether it is a request, a reply or an error."""

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


def parse_message(message: bytes) -> Message:
    """Decode one message; never raises, whatever the bytes are."""
    # Notifications are by far the most frequent messages, so they have a decoder of their own.
    if not message.startswith(_HAS_ID):
        try:
            return _read_notification(message)
        except UNREADABLE:
            pass
    try:
        envelope = _read_envelope(message)
    except UNREADABLE as error:
        return MalformedMessage(str(error)[:_TEXT_MAX], len(message))
    return _classify(envelope, len(message))


def _classify(envelope: _Envelope, size: int) -> Message:
    id_ = envelope.id
    if id_ is UNSET or id_ is None:
        return MalformedMessage("an answer, or a request, without an id", size)
    if _id_size(id_) > _ID_BITS_MAX * 4:
        return MalformedMessage("an id that is too long", size)
    if envelope.method is not UNSET:
        return Request(id_, envelope.method, envelope.params)
    if envelope.result is not UNSET:
        return Answer(id_, envelope.result)
    if envelope.error is not UNSET:
        return _refusal(id_, envelope.error)
    return MalformedMessage("neither a request nor an answer", size)


def _id_size(id_: RequestId) -> int:
    return id_.bit_length() if isinstance(id_, int) else len(id_)


def _refusal(id_: RequestId, raw: Raw) -> ErrorReply:
    """Decode an error leniently: the request that it replies to must end either way."""
    try:
        error = _read_error(raw)
    except UNREADABLE:
        return ErrorReply(id_, 0, bytes(raw)[:_TEXT_MAX].decode("utf-8", "replace"))
    return ErrorReply(id_, error.code, error.message, error.data)


def write_request(id_: RequestId, method: str, params: object, dialect: Dialect) -> bytes:
    """Encode a request; params of None are omitted."""
    return _written({"id": id_, "method": method}, method, params, dialect)


def write_notification(method: str, params: object, dialect: Dialect) -> bytes:
    """Encode a notification; params of None are omitted."""
    return _written({"method": method}, method, params, dialect)


def write_answer(id_: RequestId, result: object, dialect: Dialect) -> bytes:
    body = _encoded({"id": id_, "result": result}, "result")
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def write_refusal(id_: RequestId, error: Mapping[str, object], dialect: Dialect) -> bytes:
    """Encode an error reply."""
    body = _encoded({"error": error, "id": id_}, "error")
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def _written(head: dict[str, object], method: str, params: object, dialect: Dialect) -> bytes:
    if params is not None:
        head["params"] = params
    body = _encoded(head, method)
    return _JSONRPC + body[1:] if dialect.jsonrpc else body


def _encoded(value: dict[str, object], method: str) -> bytes:
    """Encode to JSON; raises `Unencodable` for values that the encoder would silently write as
    null.
    """
    try:
        body = _write(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Unencodable(method=method, reason=str(error)[:_TEXT_MAX]) from error
    # The scan is needed only if the encoder wrote a null, which is rare.
    if b"null" in body and _has_nonfinite(msgspec.to_builtins(value, enc_hook=_skip_raw)):
        raise Unencodable(method=method, reason="NaN and infinity are not JSON numbers")
    return body


def _skip_raw(_: object) -> None:
    """Ignore raw JSON: its own encoder has checked it."""


def _has_nonfinite(value: object) -> bool:
    """Whether a value contains NaN or infinity, which msgspec would encode as null."""
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


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Bounds on the memory and the open requests of one connection."""

    in_flight_max: int = 100
    malformed_max: int = 10  # so many in a row make the connection unhealthy
    given_up_max: int = 1024  # how many requests given up are remembered, to know late answers
    message_bytes_max: int = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Pending:
    """A request in flight with its deadline in loop time."""

    method: str
    deadline: float


@dataclass(slots=True)
class Received:
    """The messages of one batch by kind, each kind in order of arrival."""

    notifications: list[Notification] = field(default_factory=list[Notification])
    requests: list[Request] = field(default_factory=list[Request])
    answers: list[Answer | ErrorReply] = field(default_factory=list[Answer | ErrorReply])
    oddities: list[MalformedMessage | Unmatched] = field(
        default_factory=list[MalformedMessage | Unmatched]
    )


class Peer:
    """Assigns request ids, matches replies to requests, and classifies incoming messages."""

    def __init__(self, *, limits: PeerLimits | None = None, dialect: Dialect | None = None) -> None:
        self._limits = limits or PeerLimits()
        self._dialect = dialect or Dialect()
        self._last_id = 0
        self._in_flight: dict[RequestId, Pending] = {}
        self._given_up: OrderedDict[RequestId, None] = OrderedDict()
        self._asked: set[RequestId] = set()
        self.malformed_in_a_row = 0
        self.malformed_total = 0

    @property
    def healthy(self) -> bool:
        """Whether fewer than `malformed_max` messages in a row were malformed."""
        return self.malformed_in_a_row < self._limits.malformed_max

    @property
    def in_flight(self) -> Mapping[RequestId, Pending]:
        """Our requests without a reply, by id."""
        return self._in_flight

    @property
    def next_deadline(self) -> float:
        """The earliest deadline of all requests in flight; infinity if there is none."""
        return min((pending.deadline for pending in self._in_flight.values()), default=math.inf)

    def overdue(self, now: float) -> dict[RequestId, Pending]:
        """Return the requests whose deadline has passed; they stay in flight until given up."""
        return {id_: it for id_, it in self._in_flight.items() if it.deadline <= now}

    def request(
        self, method: str, params: object, *, deadline: float = math.inf
    ) -> tuple[RequestId, bytes]:
        """Assign an id and encode a request; if this raises, nothing is in flight."""
        if len(self._in_flight) >= self._limits.in_flight_max:
            raise TooManyRequests(in_flight_max=self._limits.in_flight_max)
        id_ = self._last_id + 1
        message = write_request(id_, method, params, self._dialect)
        self._check_size(message, method)
        self._last_id = id_
        self._in_flight[id_] = Pending(method, deadline)
        return id_, message

    def notification(self, method: str, params: object) -> bytes:
        message = write_notification(method, params, self._dialect)
        self._check_size(message, method)
        return message

    def answer(self, id_: RequestId, result: object) -> bytes:
        """Encode the reply to a request of the other side, which is settled unless this raises."""
        message = write_answer(id_, result, self._dialect)
        self._check_size(message, "result")
        self._asked.discard(id_)
        return message

    def refuse(self, id_: RequestId, error: Mapping[str, object]) -> bytes:
        """Encode the error reply that settles a request of the other side."""
        message = write_refusal(id_, error, self._dialect)
        self._asked.discard(id_)
        return message

    def give_up(self, id_: RequestId) -> bytes | None:
        """Stop waiting for a reply; returns the cancel notification if the dialect has one."""
        if self._in_flight.pop(id_, None) is None:
            return None
        self._given_up[id_] = None
        if len(self._given_up) > self._limits.given_up_max:
            self._given_up.popitem(last=False)
        method = self._dialect.cancel_method
        if method is None:
            return None
        return write_notification(method, {self._dialect.cancel_key: id_}, self._dialect)

    def receive(self, batch: Sequence[bytes]) -> Received:
        """Classify the messages of one read; never raises."""
        received = Received()
        notifications = received.notifications
        read = parse_message
        for raw in batch:
            message = read(raw)
            if type(message) is Notification:
                notifications.append(message)
            elif type(message) is Answer and self._in_flight.pop(message.id, None) is not None:
                received.answers.append(message)
            else:
                self._route(message, received)
                continue
            self.malformed_in_a_row = 0
        return received

    def _route(
        self,
        message: Notification | Request | Answer | ErrorReply | MalformedMessage,
        into: Received,
    ) -> None:
        match message:
            case MalformedMessage():
                self._count(message, into)
                return
            case Request(id=id_) if id_ in self._asked:
                self._count(MalformedMessage("an id that is already in use", 0), into)
                return
            case Request(id=id_):
                self._asked.add(id_)
                into.requests.append(message)
            case Answer(id=id_) | ErrorReply(id=id_) if self._in_flight.pop(id_, None) is not None:
                into.answers.append(message)
            case Answer(id=id_) | ErrorReply(id=id_):
                into.oddities.append(Unmatched(id_, late=id_ in self._given_up))
                self._given_up.pop(id_, None)
            case Notification():
                into.notifications.append(message)
        self.malformed_in_a_row = 0

    def _count(self, odd: MalformedMessage, into: Received) -> None:
        self.malformed_in_a_row += 1
        self.malformed_total += 1
        into.oddities.append(odd)

    def _check_size(self, message: bytes, method: str) -> None:
        if len(message) > self._limits.message_bytes_max:
            reason = f"it would have more than {self._limits.message_bytes_max} bytes"
            raise Unencodable(method=method, reason=reason)


class Hello(msgspec.Struct, frozen=True, rename="camel"):
    """First message of a handshake: the protocol and the range of versions that a side supports."""

    protocol: str
    oldest: int
    newest: int
    name: str = ""
    version: str = ""


class Welcome(msgspec.Struct, frozen=True, rename="camel"):
    """Reply to a handshake: the version that both sides use, and the server's own hello."""

    agreed: int
    hello: Hello


def agree(ours: Hello, theirs: Hello) -> int:
    """Return the newest version that both sides support; raises `VersionRefused`."""
    newest = min(ours.newest, theirs.newest)
    if ours.protocol != theirs.protocol or newest < max(ours.oldest, theirs.oldest):
        raise VersionRefused(
            protocol=ours.protocol,
            ours_oldest=ours.oldest,
            ours_newest=ours.newest,
            theirs_protocol=theirs.protocol,
            theirs_oldest=theirs.oldest,
            theirs_newest=theirs.newest,
        )
    return newest


class HandshakeGate:
    """Rejects all methods before the handshake, and a second handshake after it."""

    def __init__(self, *, method: str) -> None:
        self.method = method
        self.open = False

    def admit(self, method: str) -> None:
        """Raise `HandshakeMissing` or `HandshakeRepeated` unless the method may be called now."""
        if method == self.method and self.open:
            raise HandshakeRepeated()
        if method != self.method and not self.open:
            raise HandshakeMissing(method=method)
