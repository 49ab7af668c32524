"""Telemetry as the settings configure it."""

from __future__ import annotations

from pathlib import Path

from holdfast.app.settings import Settings
from holdfast.telemetry import FailureFileSink, Redactor, Telemetry
from holdfast.world import SystemClock


def failures_directory(settings: Settings) -> Path:
    """The directory with one file for each failure that a command has reported."""
    return settings.state / "failures"


def open_telemetry(settings: Settings, redactor: Redactor | None = None) -> Telemetry:
    """Telemetry that writes failures to the state directory and sends nothing over the network."""
    sinks = [FailureFileSink(failures_directory(settings))]
    return Telemetry(sinks, clock=SystemClock(), redactor=redactor, debug=settings.debug)
