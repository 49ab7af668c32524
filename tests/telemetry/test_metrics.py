"""Events become metrics, under label values that stay few."""

from __future__ import annotations

import pytest

from holdfast.failures import Ids
from holdfast.telemetry.emitter import Telemetry
from holdfast.telemetry.failures import SinkSlow
from holdfast.telemetry.metrics import MetricsSink
from holdfast.telemetry.model import (
    ApprovalCompleted,
    ApprovalRequested,
    ApprovalTimedOut,
    ConnectionFaulted,
    ConnectionStarted,
    ConnectionStopped,
    ConnectionStopReason,
    NotificationsReceived,
    NotificationUnknown,
    RequestStarted,
    RequestStopped,
    RequestTimedOutEvent,
    ResultKind,
    TelemetryEvent,
)
from holdfast.world import SystemClock

EVENTS: list[tuple[TelemetryEvent, str, dict[str, str], float]] = [
    (ConnectionStarted(peer="p"), "holdfast_connections_started_total", {}, 1),
    (
        ConnectionStopped(peer="p", reason=ConnectionStopReason.CRASHED, duration=1.0),
        "holdfast_connections_stopped_total",
        {"reason": "crashed"},
        1,
    ),
    (
        ConnectionFaulted(peer="p", error_code="TELEMETRY_SINK_SLOW"),
        "holdfast_connection_errors_total",
        {"code": "TELEMETRY_SINK_SLOW"},
        1,
    ),
    (RequestStarted(method="m", size=9), "holdfast_requests_started_total", {"method": "m"}, 1),
    (
        RequestStopped(method="m", duration=0.25, result=ResultKind.OK),
        "holdfast_request_seconds_sum",
        {"method": "m", "result": "ok"},
        0.25,
    ),
    (
        RequestTimedOutEvent(method="m", limit=9),
        "holdfast_requests_timed_out_total",
        {"method": "m"},
        1,
    ),
    (
        NotificationsReceived(method="m", count=7),
        "holdfast_notifications_received_total",
        {"method": "m"},
        7,
    ),
    (NotificationUnknown(method="x"), "holdfast_notifications_unknown_total", {}, 1),
    (ApprovalRequested(method="m"), "holdfast_approvals_requested_total", {}, 1),
    (
        ApprovalCompleted(method="m", decision="decline", duration=2.0),
        "holdfast_approval_seconds_sum",
        {"decision": "decline"},
        2.0,
    ),
    (ApprovalTimedOut(method="m", limit=30.0), "holdfast_approvals_timed_out_total", {}, 1),
]


@pytest.mark.parametrize(
    ("event", "metric", "labels", "value"), EVENTS, ids=lambda v: type(v).__name__
)
def test_an_event_is_counted(
    event: TelemetryEvent, metric: str, labels: dict[str, str], value: float
) -> None:
    sink = MetricsSink(methods=["m"])
    Telemetry([sink], clock=SystemClock()).emit(event)

    assert sink.registry.get_sample_value(metric, labels) == value


@pytest.mark.promise("T7")
def test_failures_are_counted_by_code_and_category() -> None:
    sink = MetricsSink()
    telemetry = Telemetry([sink], clock=SystemClock())
    for _ in range(2):
        telemetry.record(SinkSlow(sink="s", seconds=2.0).about(Ids(run_id="r")))

    labels = {"code": "TELEMETRY_SINK_SLOW", "category": "TELEMETRY"}
    assert sink.registry.get_sample_value("holdfast_errors_total", labels) == 2


def test_what_outsiders_invent_is_counted_as_other() -> None:
    sink = MetricsSink(methods=["m"])
    telemetry = Telemetry([sink], clock=SystemClock())
    for number in range(100):
        word = f"made-up-{number}"
        telemetry.emit(NotificationsReceived(method=word))
        telemetry.emit(ApprovalCompleted(method=word, decision=word, duration=1.0))
        telemetry.emit(ConnectionFaulted(peer=word, error_code=word))

    assert b"made-up" not in sink.exposition()
    labels = {"method": "other"}
    assert sink.registry.get_sample_value("holdfast_notifications_received_total", labels) == 100
