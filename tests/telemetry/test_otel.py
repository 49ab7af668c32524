"""OpenTelemetry gets what the door lets out, and is missed with a clear word."""

from __future__ import annotations

import subprocess
import sys

import pytest
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from holdfast.telemetry.emitter import Telemetry
from holdfast.telemetry.model import Level
from holdfast.telemetry.otel import OtelSink
from holdfast.telemetry.testing import canaries
from holdfast.world import SystemClock


@pytest.mark.promise("T6")
def test_records_arrive_without_secrets() -> None:
    exporter = InMemoryLogRecordExporter()
    sink = OtelSink(SimpleLogRecordProcessor(exporter))
    telemetry = Telemetry([sink], clock=SystemClock())
    for _, text, _ in canaries(2):
        telemetry.note(Level.WARNING, text, fields={"list": [text], "none": None})
    logs = exporter.get_finished_logs()
    telemetry.close()
    telemetry.close()

    assert len(logs) == len(list(canaries(2)))
    written = repr([(log.log_record.body, log.log_record.attributes) for log in logs])
    assert [secret for _, _, secret in canaries(2) if secret in written] == []
    assert {log.log_record.severity_text for log in logs} == {"WARNING"}


def test_a_missing_library_is_named() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import holdfast.telemetry as t\n"
        "from holdfast.failures import Failure\n"
        "try: t.OtelSink\n"
        "except Failure as failure: print(failure.code, failure.user_message)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert done.stdout == (
        "TELEMETRY_EXTRA_MISSING Sending to OpenTelemetry needs the optional part otel. "
        "Install holdfast[otel], or remove OpenTelemetry from the settings.\n"
    )
