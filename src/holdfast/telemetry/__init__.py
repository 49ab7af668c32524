"""What the operator may want to know, through one door and without secrets.

What it offers is loaded when it is first asked for: the rules about secrets take a while to
read, and some sinks need a library of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.telemetry.artefact import ArtefactSink, read_failures
    from holdfast.telemetry.core.known_values import KnownRedactor
    from holdfast.telemetry.core.passing import StreamRedactor
    from holdfast.telemetry.core.redaction import Redactor
    from holdfast.telemetry.core.values import ValueRedactor
    from holdfast.telemetry.door import Telemetry
    from holdfast.telemetry.log import LogSink, Style
    from holdfast.telemetry.metrics import MetricsSink
    from holdfast.telemetry.otel import OtelSink
    from holdfast.telemetry.ports import Sink

__all__ = [
    "ArtefactSink",
    "KnownRedactor",
    "LogSink",
    "MetricsSink",
    "OtelSink",
    "Redactor",
    "Sink",
    "StreamRedactor",
    "Style",
    "Telemetry",
    "ValueRedactor",
    "read_failures",
]

__getattr__ = face(
    __name__,
    {
        "ArtefactSink": "artefact",
        "read_failures": "artefact",
        "LogSink": "log",
        "Style": "log",
        "MetricsSink": "metrics",
        "OtelSink": "otel",
        "Redactor": "core.redaction",
        "KnownRedactor": "core.known_values",
        "StreamRedactor": "core.passing",
        "ValueRedactor": "core.values",
        "Telemetry": "door",
        "Sink": "ports",
    },
)
