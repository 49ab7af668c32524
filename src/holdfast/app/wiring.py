"""Put the parts together as the settings say."""

from __future__ import annotations

from pathlib import Path

from holdfast.app.settings import Settings
from holdfast.telemetry import FailureFileSink, Redactor, Telemetry
from holdfast.world import SystemClock


def failures_kept(settings: Settings) -> Path:
    """The directory in which every failure that reached a person can be read later."""
    return settings.state / "failures"


def telemetry(settings: Settings, redactor: Redactor | None = None) -> Telemetry:
    """Telemetry that keeps failures on this machine; nothing ever leaves it."""
    sinks = [FailureFileSink(failures_kept(settings))]
    return Telemetry(sinks, clock=SystemClock(), redactor=redactor, debug=settings.debug)
