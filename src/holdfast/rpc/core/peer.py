"""One side of a JSON-RPC conversation, without any I/O.

The peer numbers our requests, matches answers in whatever order they come, and sorts what
arrives into what its owner must do. It never raises on input: what is no message, or answers
nothing, is counted and handed back as an oddity.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.rpc.core import messages
from holdfast.rpc.failures import TooManyRequests, Unencodable
from holdfast.rpc.model import (
    Answer,
    Dialect,
    Malformed,
    Notification,
    Refusal,
    Request,
    RequestId,
    Unmatched,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one conversation may hold at a time."""

    in_flight_max: int = 100
    malformed_max: int = 10  # so many in a row make the connection unhealthy
    given_up_max: int = 1024  # how many requests given up are remembered, to know late answers
    message_bytes_max: int = 100 * 2**20


@dataclass(frozen=True, slots=True)
class Pending:
    """A request of ours that has no answer yet, and when we stop waiting for one."""

    method: str
    deadline: float


@dataclass(slots=True)
class Received:
    """What a batch of messages asks of the peer's owner, in the order of arrival of each sort."""

    notifications: list[Notification] = field(default_factory=list[Notification])
    requests: list[Request] = field(default_factory=list[Request])
    answers: list[Answer | Refusal] = field(default_factory=list[Answer | Refusal])
    oddities: list[Malformed | Unmatched] = field(default_factory=list[Malformed | Unmatched])


class Peer:
    """Numbers requests, matches answers and sorts what arrives."""

    def __init__(self, *, limits: Limits | None = None, dialect: Dialect | None = None) -> None:
        self._limits = limits or Limits()
        self._dialect = dialect or Dialect()
        self._last_id = 0
        self._in_flight: dict[RequestId, Pending] = {}
        self._given_up: OrderedDict[RequestId, None] = OrderedDict()
        self._asked: set[RequestId] = set()
        self.malformed_in_a_row = 0
        self.malformed_total = 0

    @property
    def healthy(self) -> bool:
        """Whether what arrives still makes sense."""
        return self.malformed_in_a_row < self._limits.malformed_max

    @property
    def in_flight(self) -> Mapping[RequestId, Pending]:
        """Our requests that have no answer yet, by id."""
        return self._in_flight

    @property
    def next_deadline(self) -> float:
        """When the first of our requests will be overdue."""
        return min((pending.deadline for pending in self._in_flight.values()), default=math.inf)

    def overdue(self, now: float) -> dict[RequestId, Pending]:
        """Our requests whose deadline has come; they stay in flight until given up."""
        return {id_: it for id_, it in self._in_flight.items() if it.deadline <= now}

    def request(
        self, method: str, params: object, *, deadline: float = math.inf
    ) -> tuple[RequestId, bytes]:
        """Number a request and write it; nothing is in flight if this raises."""
        if len(self._in_flight) >= self._limits.in_flight_max:
            raise TooManyRequests(in_flight_max=self._limits.in_flight_max)
        id_ = self._last_id + 1
        message = messages.write_request(id_, method, params, self._dialect)
        self._fits(message, method)
        self._last_id = id_
        self._in_flight[id_] = Pending(method, deadline)
        return id_, message

    def notification(self, method: str, params: object) -> bytes:
        """Write a notification."""
        message = messages.write_notification(method, params, self._dialect)
        self._fits(message, method)
        return message

    def answer(self, id_: RequestId, result: object) -> bytes:
        """Write the answer to a request of theirs; it is settled unless this raises."""
        message = messages.write_answer(id_, result, self._dialect)
        self._fits(message, "result")
        self._asked.discard(id_)
        return message

    def refuse(self, id_: RequestId, error: Mapping[str, object]) -> bytes:
        """Write the error that settles a request of theirs."""
        message = messages.write_refusal(id_, error, self._dialect)
        self._asked.discard(id_)
        return message

    def give_up(self, id_: RequestId) -> bytes | None:
        """Stop waiting for an answer; return the message that says so, if the dialect has one."""
        if self._in_flight.pop(id_, None) is None:
            return None
        self._given_up[id_] = None
        if len(self._given_up) > self._limits.given_up_max:
            self._given_up.popitem(last=False)
        method = self._dialect.cancel_method
        if method is None:
            return None
        return messages.write_notification(method, {self._dialect.cancel_key: id_}, self._dialect)

    def receive(self, batch: Sequence[bytes]) -> Received:
        """Sort out what one read yielded; never raises."""
        received = Received()
        notifications = received.notifications
        read = messages.read
        for raw in batch:
            message = read(raw)
            if type(message) is Notification:
                notifications.append(message)
            elif type(message) is Answer and self._in_flight.pop(message.id, None) is not None:
                received.answers.append(message)
            else:
                self._sort(message, received)
                continue
            self.malformed_in_a_row = 0
        return received

    def _sort(
        self, message: Notification | Request | Answer | Refusal | Malformed, into: Received
    ) -> None:
        match message:
            case Malformed():
                self._count(message, into)
                return
            case Request(id=id_) if id_ in self._asked:
                self._count(Malformed("an id that is already in use", 0), into)
                return
            case Request(id=id_):
                self._asked.add(id_)
                into.requests.append(message)
            case Answer(id=id_) | Refusal(id=id_) if self._in_flight.pop(id_, None) is not None:
                into.answers.append(message)
            case Answer(id=id_) | Refusal(id=id_):
                into.oddities.append(Unmatched(id_, late=id_ in self._given_up))
                self._given_up.pop(id_, None)
            case Notification():
                into.notifications.append(message)
        self.malformed_in_a_row = 0

    def _count(self, odd: Malformed, into: Received) -> None:
        self.malformed_in_a_row += 1
        self.malformed_total += 1
        into.oddities.append(odd)

    def _fits(self, message: bytes, method: str) -> None:
        if len(message) > self._limits.message_bytes_max:
            reason = f"it would have more than {self._limits.message_bytes_max} bytes"
            raise Unencodable(method=method, reason=reason)
