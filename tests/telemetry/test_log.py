"""Log lines are JSON or words, and nobody waits for their reader."""

from __future__ import annotations

import io
import os

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.telemetry.log import LogSink, LogStyle
from holdfast.telemetry.model import Level, TelemetryRecord

RECORD = TelemetryRecord(
    at=0.5, level=Level.WARNING, name="request.timeout", fields={"method": "m", "limit": 3.0}
)


@pytest.mark.promise("T3")
def test_a_line_is_one_json_object() -> None:
    stream = io.StringIO()
    LogSink(stream).take(RECORD)

    assert stream.getvalue().endswith("}\n")
    assert msgspec.json.decode(stream.getvalue()) == {
        "timestamp": "1970-01-01T00:00:00.500000+00:00",
        "level": "warning",
        "event": "request.timeout",
        "method": "m",
        "limit": 3.0,
    }


def test_a_line_for_people_is_one_line_without_colours() -> None:
    stream = io.StringIO()
    LogSink(stream, style=LogStyle.HUMAN).take(RECORD)

    assert stream.getvalue().count("\n") == 1
    assert "request.timeout" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_values_that_json_does_not_know_are_written_as_text() -> None:
    stream = io.StringIO()
    LogSink(stream).take(
        TelemetryRecord(at=0.0, level=Level.INFO, name="n", fields={"x": {1, 2}.__class__})
    )

    assert msgspec.json.decode(stream.getvalue())["x"] == "<class 'set'>"


def test_a_reader_who_does_not_read_costs_lines_not_time() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        sink = LogSink(stream)
        for _ in range(3000):
            sink.take(RECORD)
        lost = sink.lost
        while len(os.read(reading, 1 << 20)) == 1 << 20:
            pass
        sink.take(RECORD)
        told = os.read(reading, 1 << 20).splitlines()
    os.close(reading)

    assert 0 < lost < 3000
    assert [msgspec.json.decode(line)["event"] for line in told][-2:] == [
        "log.lines_lost",
        "request.timeout",
    ]
    assert f'"count":{lost}'.encode() in told[-2]


def test_a_line_that_nobody_took_the_rest_of_spoils_no_other() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        sink = LogSink(stream)
        sink.take(replace(RECORD, fields={"long": "x" * 10 * 2**20}))
        torn = os.read(reading, 1 << 20)
        sink.take(RECORD)
        _, *told = (torn + os.read(reading, 1 << 20)).splitlines()
    os.close(reading)

    assert [msgspec.json.decode(line)["event"] for line in told] == [
        "log.lines_lost",
        "request.timeout",
    ]


def test_a_long_line_is_written_whole() -> None:
    stream = io.StringIO()
    LogSink(stream).take(
        TelemetryRecord(at=0.0, level=Level.INFO, name="n", fields={"x": "y" * 10_000})
    )

    assert msgspec.json.decode(stream.getvalue())["x"] == "y" * 10_000
