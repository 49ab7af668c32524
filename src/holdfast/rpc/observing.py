"""Tell telemetry what happens on a connection: sizes and durations, never parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import anyio

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut
from holdfast.rpc.model import Malformed, Notification, Unmatched
from holdfast.telemetry.model import (
    ConnectionFaulted,
    ConnectionStarted,
    ConnectionStopped,
    Level,
    NotificationsReceived,
    RequestStarted,
    RequestStopped,
    ResultKind,
    StopReason,
)
from holdfast.telemetry.model import RequestTimedOut as TimeoutEvent

if TYPE_CHECKING:
    from holdfast.telemetry import Telemetry

_UNREPORTED = nullcontext()


class Observer:
    """Reports on one connection; costs next to nothing when nobody listens."""

    def __init__(self, telemetry: Telemetry | None, peer: str) -> None:
        self._telemetry = telemetry
        self._reports_requests = telemetry is not None and telemetry.wants(Level.WARNING)
        self._peer = peer
        self._began = 0.0

    def started(self) -> None:
        """The connection is open."""
        self._began = anyio.current_time()
        if self._telemetry is not None:
            self._telemetry.emit(ConnectionStarted(peer=self._peer))

    def stopped(self, failure: Failure) -> None:
        """The connection has ended; what ended it is recorded unless that was in good order."""
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
        """Report what one read yielded, by method."""
        if self._telemetry is None or not self._telemetry.wants(Level.DEBUG):
            return
        for method, count in Counter(note.method for note in notifications).items():
            self._telemetry.emit(NotificationsReceived(method=method, count=count))

    def odd(self, oddity: Malformed | Unmatched) -> None:
        """Report what arrived and could not be used."""
        if self._telemetry is not None:
            what = "malformed" if isinstance(oddity, Malformed) else "unmatched"
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


def _stop_reason(failure: Failure) -> StopReason:
    if isinstance(failure, ConnectionClosed):
        return StopReason.NORMAL
    killed = isinstance(failure, ConnectionLost) and (failure.status or 0) < 0
    return StopReason.KILLED if killed else StopReason.CRASHED
