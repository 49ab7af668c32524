"""Records as Prometheus metrics, under label values that stay few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from holdfast.failures import type_of
from holdfast.telemetry.model import ConnectionStopReason, Level, ResultKind, TelemetryRecord

OTHER = "other"
DECISIONS = frozenset({"accept", "accept_for_session", "decline", "cancel"})
_REASONS = frozenset(reason.value for reason in ConnectionStopReason)
_RESULTS = frozenset(result.value for result in ResultKind)
_SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)

Fields = Mapping[str, object]


class MetricsSink:
    """Counts and times records; whatever outsiders may invent is counted as `other`."""

    name = "metrics"
    level = Level.DEBUG

    def __init__(self, *, methods: Collection[str] = (), registry: CollectorRegistry | None = None):
        self.registry = registry or CollectorRegistry()
        self._methods = frozenset(methods)
        self._act_on: dict[str, Callable[[Fields], None]] = {
            "failure": self._failures(),
            **self._connections(),
            **self._requests(),
            **self._notifications(),
            **self._approvals(),
        }

    def take(self, record: TelemetryRecord) -> None:
        """Count one record."""
        act = self._act_on.get(record.name)
        if act is not None:
            act(record.fields)

    def close(self) -> None:
        """Hold nothing."""

    def exposition(self) -> bytes:
        """All metrics in the text form that Prometheus reads."""
        return generate_latest(self.registry)

    def _failures(self) -> Callable[[Fields], None]:
        errors = self._counter("holdfast_errors", "Failures by code.", "code", "category")

        def act(fields: Fields) -> None:
            code = _among(type_of, fields["error_code"])
            errors.labels(code, OTHER if code == OTHER else code.partition("_")[0]).inc()

        return act

    def _connections(self) -> dict[str, Callable[[Fields], None]]:
        started = self._counter("holdfast_connections_started", "Connections made.")
        stopped = self._counter("holdfast_connections_stopped", "Connections ended.", "reason")
        faulted = self._counter("holdfast_connection_errors", "Input of no use.", "code")
        return {
            "connection.start": lambda _: started.inc(),
            "connection.stop": lambda fields: stopped.labels(
                _among(_REASONS, fields["reason"])
            ).inc(),
            "connection.error": lambda fields: faulted.labels(
                _among(type_of, fields["error_code"])
            ).inc(),
        }

    def _requests(self) -> dict[str, Callable[[Fields], None]]:
        started = self._counter("holdfast_requests_started", "Requests sent.", "method")
        timed_out = self._counter("holdfast_requests_timed_out", "Requests too late.", "method")
        seconds = self._histogram("holdfast_request_seconds", "Answer times.", "method", "result")
        return {
            "request.start": lambda fields: started.labels(self._method(fields)).inc(),
            "request.timeout": lambda fields: timed_out.labels(self._method(fields)).inc(),
            "request.stop": lambda fields: seconds.labels(
                self._method(fields), _among(_RESULTS, fields["result"])
            ).observe(_number(fields["duration"])),
        }

    def _notifications(self) -> dict[str, Callable[[Fields], None]]:
        received = self._counter("holdfast_notifications_received", "Notifications.", "method")
        unknown = self._counter("holdfast_notifications_unknown", "Unknown notifications.")
        return {
            "notification.received": lambda fields: received.labels(self._method(fields)).inc(
                _number(fields["count"])
            ),
            "notification.unknown": lambda _: unknown.inc(),
        }

    def _approvals(self) -> dict[str, Callable[[Fields], None]]:
        requested = self._counter("holdfast_approvals_requested", "Approvals asked for.")
        timed_out = self._counter(
            "holdfast_approvals_timed_out", "Approvals without a decision in time."
        )
        seconds = self._histogram("holdfast_approval_seconds", "Times to decide.", "decision")
        return {
            "approval.requested": lambda _: requested.inc(),
            "approval.timeout": lambda _: timed_out.inc(),
            "approval.completed": lambda fields: seconds.labels(
                _among(DECISIONS, fields["decision"])
            ).observe(_number(fields["duration"])),
        }

    def _method(self, fields: Fields) -> str:
        return _among(self._methods, fields["method"])

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, registry=self.registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(name, about, labels, registry=self.registry, buckets=_SECONDS)


def _among(known: Collection[str], value: object) -> str:
    return str(value) if value in known else OTHER


def _number(value: object) -> float:
    assert isinstance(value, (int, float)), "events carry numbers here"
    return float(value)
