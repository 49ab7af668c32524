"""What telemetry needs from whatever keeps or shows its records."""

from __future__ import annotations

from typing import Protocol

from holdfast.telemetry.model import Level, TelemetryRecord


class Sink(Protocol):
    """Takes records that hold no secrets; may fail, and is then left out for a while."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def level(self) -> Level:
        """The least level that it wants."""
        ...

    def take(self, record: TelemetryRecord) -> None:
        """Keep or show one record, without waiting for anyone."""
        ...

    def close(self) -> None:
        """Release what it holds; may be called again."""
        ...
