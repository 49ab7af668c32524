"""JSON-RPC connection over one transport: requests both ways, notifications, orderly shutdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, overload

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Raw

from holdfast.failures import Failure, from_rpc_data, ungrouped
from holdfast.rpc.backlog import Backlog, Overflow
from holdfast.rpc.dispatch import Dispatch, Service
from holdfast.rpc.failures import (
    AnswerInvalid,
    ConnectionClosed,
    ConnectionLost,
    ErrorResponse,
    RequestTimedOut,
)
from holdfast.rpc.model import (
    OWN_DIALECT,
    Answer,
    Dialect,
    ErrorReply,
    MalformedMessage,
    Notification,
    Request,
    RequestId,
    Unmatched,
)
from holdfast.rpc.peer import UNREADABLE, HandshakeGate, Peer, PeerLimits, Received
from holdfast.rpc.ports import NotificationSink, Transport
from holdfast.rpc.subscription import Subscription
from holdfast.rpc.waiter_loop import Waiter, deadline
from holdfast.telemetry.model import (
    ConnectionFaulted,
    ConnectionStarted,
    ConnectionStopped,
    ConnectionStopReason,
    Level,
    NotificationsReceived,
    RequestStarted,
    RequestStopped,
    ResultKind,
)
from holdfast.telemetry.model import RequestTimedOutEvent as TimeoutEvent

if TYPE_CHECKING:
    from holdfast.telemetry import Telemetry


# Telemetry gets sizes and durations of messages, never parameters.

_UNREPORTED = nullcontext()


class Observer:
    """Reports events of one connection to telemetry; nearly free if telemetry is off."""

    def __init__(self, telemetry: Telemetry | None, peer: str) -> None:
        self._telemetry = telemetry
        self._reports_requests = telemetry is not None and telemetry.wants(Level.WARNING)
        self._peer = peer
        self._began = 0.0

    def started(self) -> None:
        self._began = anyio.current_time()
        if self._telemetry is not None:
            self._telemetry.emit(ConnectionStarted(peer=self._peer))

    def stopped(self, failure: Failure) -> None:
        """Report the end of the connection; records the failure unless the close was clean."""
        if self._telemetry is None:
            return
        if not isinstance(failure, ConnectionClosed):
            self._telemetry.record(failure)
        lasted = anyio.current_time() - self._began
        reason = _stop_reason(failure)
        self._telemetry.emit(ConnectionStopped(peer=self._peer, reason=reason, duration=lasted))

    def request(self, method: str, size: int) -> AbstractContextManager[None]:
        """Report one request of ours, however it ends."""
        if self._telemetry is None or not self._reports_requests:
            return _UNREPORTED
        return _reported(self._telemetry, method, size)

    def received(self, notifications: Sequence[Notification]) -> None:
        """Report the notifications of one read, counted by method."""
        if self._telemetry is None or not self._telemetry.wants(Level.DEBUG):
            return
        for method, count in Counter(note.method for note in notifications).items():
            self._telemetry.emit(NotificationsReceived(method=method, count=count))

    def odd(self, oddity: MalformedMessage | Unmatched) -> None:
        """Report a malformed or unmatched message."""
        if self._telemetry is not None:
            what = "malformed" if isinstance(oddity, MalformedMessage) else "unmatched"
            self._telemetry.emit(ConnectionFaulted(peer=self._peer, error_code=what))


@contextmanager
def _reported(telemetry: Telemetry, method: str, size: int) -> Generator[None]:
    began = anyio.current_time()
    result = ResultKind.CANCELLED
    telemetry.emit(RequestStarted(method=method, size=size))
    try:
        yield
        result = ResultKind.OK
    except RequestTimedOut as failure:
        result = ResultKind.LOST
        telemetry.emit(TimeoutEvent(method=method, limit=failure.limit))
        raise
    except (ConnectionLost, ConnectionClosed):
        result = ResultKind.LOST
        raise
    except Failure:
        result = ResultKind.ERROR
        raise
    finally:
        lasted = anyio.current_time() - began
        telemetry.emit(RequestStopped(method=method, duration=lasted, result=result))


def _stop_reason(failure: Failure) -> ConnectionStopReason:
    if isinstance(failure, ConnectionClosed):
        return ConnectionStopReason.NORMAL
    killed = isinstance(failure, ConnectionLost) and (failure.status or 0) < 0
    return ConnectionStopReason.KILLED if killed else ConnectionStopReason.CRASHED


_WAITING_MAX = 1000


class ReplyQueue:
    """Sends replies of the reader itself (pings, refusals) in order, one batch at a time.

    The reader never waits for a slow peer: two peers that reply to each other could deadlock. It
    stops reading only from a peer that sends a thousand requests without reading one reply.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: list[bytes] = []
        self._changed = anyio.Event()
        self._room = anyio.Event()

    def put(self, message: bytes) -> None:
        """Send a message now, or queue it until the transport has room."""
        # An ended transport tells its reader, and takes nothing more.
        with suppress(Failure):
            if self._waiting or not self._transport.offer([message]):
                self._waiting.append(message)
                self._changed.set()

    async def has_room(self) -> None:
        """Wait until the queue is below its limit."""
        while len(self._waiting) > _WAITING_MAX:
            self._room = anyio.Event()
            await self._room.wait()

    async def run(self) -> None:
        """Send queued messages until the transport ends; its reader reports that failure."""
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                batch, self._waiting = self._waiting, []
                if batch:
                    await self._transport.send(batch)
                self._room.set()
        except Failure:
            self._waiting.clear()
            self._room.set()


class PendingRequests:
    """All requests of ours without an outcome, and the one task that watches their deadlines.

    A cancel scope with a timer per request would cost more than the request itself.
    """

    def __init__(self, peer: Peer, send: Callable[[bytes], None]) -> None:
        self._peer = peer
        self._send_later = send
        self._waiters: dict[RequestId, Waiter] = {}
        # The deadline that the task waits for.
        self._watched = math.inf
        self._earlier = anyio.Event()

    def expect(self, id_: RequestId, method: str, *, limit: float) -> Waiter:
        """Return the waiter for one reply; use it as a context manager."""
        waiter = Waiter(id_, method, limit=limit, forget=self._forget)
        self._waiters[id_] = waiter
        if self._peer.in_flight[id_].deadline < self._watched:
            self._earlier.set()
        return waiter

    def settle(self, answer: Answer | ErrorReply) -> None:
        """Pass a reply to its waiter."""
        if (waiter := self._waiters.get(answer.id)) is not None:
            waiter.settle(_outcome(answer, waiter.method))

    def end(self, failure: Failure) -> None:
        """Fail all waiters: no reply can arrive any more."""
        for waiter in tuple(self._waiters.values()):
            waiter.settle(failure)

    async def watch_deadlines(self) -> None:
        """Time out overdue requests; runs until it is cancelled."""
        while True:
            self._earlier = anyio.Event()
            self._watched = self._peer.next_deadline
            with anyio.CancelScope(deadline=self._watched):
                await self._earlier.wait()
            for id_ in self._peer.overdue(anyio.current_time()):
                self._time_out(id_)

    def _time_out(self, id_: RequestId) -> None:
        self._give_up(id_)
        if (waiter := self._waiters.get(id_)) is not None:
            waiter.settle(RequestTimedOut(method=waiter.method, limit=waiter.limit))

    def _forget(self, waiter: Waiter) -> None:
        del self._waiters[waiter.id]
        if not waiter.is_settled:
            self._give_up(waiter.id)

    def _give_up(self, id_: RequestId) -> None:
        if (farewell := self._peer.give_up(id_)) is not None:
            self._send_later(farewell)


def _outcome(answer: Answer | ErrorReply, method: str) -> Answer | Failure:
    if isinstance(answer, Answer):
        return answer
    return from_rpc_data(answer.data) or ErrorResponse(
        method=method,
        request=answer.id,
        error_code=answer.code,
        error_message=answer.message,
        error_data=answer.data,
    )


Result = TypeVar("Result")


def _no_pulse() -> object:
    return {}


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """Limits, dialect, served methods, handshake gates and telemetry of a connection."""

    limits: PeerLimits = field(default_factory=PeerLimits)
    dialect: Dialect = OWN_DIALECT
    service: Service = field(default_factory=Service)
    pulse: Callable[[], object] = _no_pulse  # what a ping is answered with
    calls: HandshakeGate | None = None  # our handshake, before which we call nothing
    serves: HandshakeGate | None = None  # their handshake, before which we serve nothing
    telemetry: Telemetry | None = None
    peer: str = "peer"  # what telemetry calls the other side


class Connection:
    """One JSON-RPC connection, as an async context manager.

    Every request ends: with its reply, the error of the other side, its timeout, or the failure
    that ended the connection. Notifications reach every subscription in order. A connection never
    reconnects by itself.
    """

    def __init__(self, transport: Transport, config: ConnectionConfig | None = None) -> None:
        self._transport = transport
        self._config = config or ConnectionConfig()
        self._peer = Peer(limits=self._config.limits, dialect=self._config.dialect)
        self._dispatch = Dispatch(self._config.service, self._settle)
        self._replies = ReplyQueue(transport)
        self._observer = Observer(self._config.telemetry, self._config.peer)
        self._waiting = PendingRequests(self._peer, self._send_later)
        self._followers: list[NotificationSink] = []
        self._withdrawals = _withdrawals(self._config.dialect)
        self._tasks: TaskGroup = anyio.create_task_group()
        self._ended = anyio.Event()
        self._failure: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """The failure that ended the connection; None while it is open."""
        return self._failure

    @property
    def healthy(self) -> bool:
        """Whether the connection is open and its incoming messages are valid."""
        return self._failure is None and self._peer.healthy

    async def wait_ended(self) -> Failure:
        """Wait until the connection has ended; returns the failure."""
        await self._ended.wait()
        assert self._failure is not None
        return self._failure

    @overload
    async def request(self, method: str, params: object = None, *, timeout: float) -> Raw: ...

    @overload
    async def request(
        self, method: str, params: object = None, *, timeout: float, result: type[Result]
    ) -> Result: ...

    async def request(
        self,
        method: str,
        params: object = None,
        *,
        timeout: float,
        result: type[Result] | None = None,
    ) -> Result | Raw:
        """Send a request and return its result; raises a failure within `timeout` seconds."""
        self._check(method)
        latest = deadline(after=timeout)
        id_, message = self._peer.request(method, params, deadline=latest)
        with (
            self._observer.request(method, len(message)),
            self._waiting.expect(id_, method, limit=timeout) as waiter,
        ):
            await self._send(message, deadline=latest)
            answer = await waiter.answer()
        return _read(answer, method, result)

    async def notify(self, method: str, params: object = None) -> None:
        """Send a notification; waits while the other side applies backpressure."""
        self._check(method)
        message = self._peer.notification(method, params)
        await self._send(message)

    def subscribe(
        self,
        *,
        overflow: Overflow = Overflow.END,
        items_max: int = 100_000,
        bytes_max: int = 64 * 2**20,
    ) -> Subscription:
        """Subscribe to all notifications from now on; the caller closes the subscription."""
        backlog = Backlog(overflow=overflow, items_max=items_max, bytes_max=bytes_max)
        subscription = Subscription(backlog, self._unfollow)
        self.follow(subscription)
        return subscription

    def follow(self, follower: NotificationSink) -> None:
        """Pass all notifications from now on to a sink, until the connection ends."""
        if self._failure is None:
            self._followers.append(follower)
        else:
            follower.end(self._failure)

    async def aclose(self) -> None:
        """Close the connection; idempotent."""
        self._end(ConnectionClosed(reason="closed by this side"))
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._observer.started()
        self._tasks.start_soon(self._listen)
        self._tasks.start_soon(self._replies.run)
        self._tasks.start_soon(self._waiting.watch_deadlines)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            await self.aclose()
        self._tasks.cancel_scope.cancel()
        with ungrouped():
            if kind is None or issubclass(kind, anyio.get_cancelled_exc_class()):
                return await self._tasks.__aexit__(kind, error, trace)
            # The body's own error goes on as it is, in no group.
            await self._tasks.__aexit__(None, None, None)
            return False

    async def _listen(self) -> None:
        try:
            while True:
                batch = await self._transport.receive()
                self._take(self._peer.receive(batch), sum(map(len, batch)))
                await self._replies.has_room()
        except Failure as failure:
            self._end(failure)
        finally:
            # Also on cancellation: a shielded task would wait for ever.
            self._end(ConnectionClosed(reason="closed by this side"))

    def _take(self, received: Received, size: int) -> None:
        if received.notifications:
            self._observer.received(received.notifications)
            for follower in tuple(self._followers):
                follower.put(received.notifications, size)
        for oddity in received.oddities:
            self._observer.odd(oddity)
        for answer in received.answers:
            self._waiting.settle(answer)
        for request in received.requests:
            self._admit(request)
        if self._withdrawals:
            self._apply_withdrawals(received)

    def _admit(self, request: Request) -> None:
        """Reply at once where possible, and dispatch the rest."""
        try:
            if request.method == self._config.dialect.ping_method:
                self._replies.put(self._peer.answer(request.id, self._config.pulse()))
                return
            if self._config.serves is not None:
                self._config.serves.admit(request.method)
            self._dispatch.admit(request, self._tasks)
        except Failure as failure:
            self._replies.put(self._refused(request, failure))

    def _apply_withdrawals(self, received: Received) -> None:
        """Cancel requests that the other side withdrew, or that another client has answered."""
        for notification in received.notifications:
            key = self._withdrawals.get(notification.method)
            if key is not None:
                try:
                    params = msgspec.json.decode(notification.params, type=dict[str, object])
                except UNREADABLE:
                    continue
                if isinstance(id_ := params.get(key), (int, str)):
                    self._dispatch.cancel(id_)

    async def _settle(self, request: Request, outcome: object) -> None:
        """Send the outcome of a request; an unencodable result becomes an error reply."""
        try:
            if isinstance(outcome, Failure):
                message = self._refused(request, outcome)
            else:
                message = self._peer.answer(request.id, outcome)
        except Failure as failure:
            message = self._refused(request, failure)
        try:
            await self._transport.send([message])
        except Failure as failure:
            self._end(failure)

    def _refused(self, request: Request, failure: Failure) -> bytes:
        return self._peer.refuse(request.id, self._config.service.error_form(failure))

    def _send_later(self, message: bytes) -> None:
        if self._failure is None:
            self._replies.put(message)

    def _check(self, method: str) -> None:
        if self._failure is not None:
            raise copy(self._failure)
        if self._config.calls is not None:
            self._config.calls.admit(method)

    def _unfollow(self, follower: NotificationSink) -> None:
        if follower in self._followers:
            self._followers.remove(follower)

    async def _send(self, message: bytes, *, deadline: float = math.inf) -> None:
        """Send a message; a failure of the transport ends the connection."""
        try:
            if not self._transport.offer([message]):
                with anyio.CancelScope(deadline=deadline):
                    await self._transport.send([message])
        except Failure as failure:
            self._end(failure)
            raise

    def _end(self, failure: Failure) -> None:
        """End the connection with its first failure: wakes all requests, handlers and sinks."""
        if self._failure is not None:
            return
        self._failure = failure
        self._observer.stopped(failure)
        self._ended.set()
        self._dispatch.cancel_all()
        self._waiting.end(failure)
        for follower in tuple(self._followers):
            follower.end(failure)
        self._followers.clear()


def _withdrawals(dialect: Dialect) -> dict[str, str]:
    """Return the methods of notifications that cancel a request, each with the key of its id."""
    pairs = (
        (dialect.cancel_method, dialect.cancel_key),
        (dialect.resolved_method, dialect.resolved_key),
    )
    return {method: key for method, key in pairs if method is not None}


def _read(answer: Answer, method: str, result: type[Result] | None) -> Result | Raw:
    if result is None:
        return answer.result
    try:
        return msgspec.json.decode(answer.result, type=result)
    except UNREADABLE as error:
        raise AnswerInvalid(method=method, reason=str(error)[:500]) from error
