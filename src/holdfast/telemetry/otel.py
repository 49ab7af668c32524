"""Records as OpenTelemetry logs, sent where the person configured and nowhere else."""

from __future__ import annotations

import msgspec

from holdfast.telemetry.failures import TelemetryExtraMissing
from holdfast.telemetry.model import Level, TelemetryRecord

try:
    from opentelemetry._logs import LogRecord, SeverityNumber
    from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor
    from opentelemetry.sdk.resources import Resource
except ModuleNotFoundError as error:
    raise TelemetryExtraMissing(service="OpenTelemetry", extra="otel") from error

_SEVERITY = {
    Level.DEBUG: SeverityNumber.DEBUG,
    Level.INFO: SeverityNumber.INFO,
    Level.WARNING: SeverityNumber.WARN,
    Level.ERROR: SeverityNumber.ERROR,
}


class OtelSink:
    """Passes records to the processor it is given; batching and sending are that one's work."""

    name = "OpenTelemetry"

    def __init__(self, processor: LogRecordProcessor, *, level: Level = Level.INFO) -> None:
        self.level = level
        resource = Resource({"service.name": "holdfast"})
        self._provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_log_record_processor(processor)
        self._logger = self._provider.get_logger("holdfast")
        self._is_closed = False

    def take(self, record: TelemetryRecord) -> None:
        """Pass on one record."""
        flat = {
            name: value
            if isinstance(value, (str, bool, int, float))
            else msgspec.json.encode(value, enc_hook=str).decode()
            for name, value in record.fields.items()
            if value is not None
        }
        self._logger.emit(
            LogRecord(
                timestamp=int(record.at * 1e9),
                severity_text=record.level.name,
                severity_number=_SEVERITY[record.level],
                body=str(record.fields.get("message", record.name)),
                attributes=flat,
                event_name=record.name,
            )
        )

    def close(self) -> None:
        """Let the processor send what it still holds."""
        if not self._is_closed:
            self._is_closed = True
            self._provider.shutdown()
