"""What the operator may want to know, through one door and without secrets.

What it offers is loaded when it is first asked for: the rules about secrets take a while to
read, and some sinks need a library of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.telemetry.emitter import Telemetry
    from holdfast.telemetry.failure_file import FailureFileSink, read_failures
    from holdfast.telemetry.log import LogSink, LogStyle
    from holdfast.telemetry.metrics import MetricsSink
    from holdfast.telemetry.otel import OtelSink
    from holdfast.telemetry.ports import Sink
    from holdfast.telemetry.redaction.known_values import KnownRedactor
    from holdfast.telemetry.redaction.redaction import Redactor
    from holdfast.telemetry.redaction.scan import StreamRedactor
    from holdfast.telemetry.redaction.values import ValueRedactor

__all__ = [
    "FailureFileSink",
    "KnownRedactor",
    "LogSink",
    "LogStyle",
    "MetricsSink",
    "OtelSink",
    "Redactor",
    "Sink",
    "StreamRedactor",
    "Telemetry",
    "ValueRedactor",
    "read_failures",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "FailureFileSink": "failure_file",
        "read_failures": "failure_file",
        "LogSink": "log",
        "LogStyle": "log",
        "MetricsSink": "metrics",
        "OtelSink": "otel",
        "Redactor": "redaction.redaction",
        "KnownRedactor": "redaction.known_values",
        "StreamRedactor": "redaction.scan",
        "ValueRedactor": "redaction.values",
        "Telemetry": "emitter",
        "Sink": "ports",
    },
)
