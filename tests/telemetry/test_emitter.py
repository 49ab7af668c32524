"""Everything passes one door: without secrets, to every sink, and never at the caller's cost."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from holdfast.failures import Action, Failure, Ids, Kind, UnexpectedError, boundary, to_wire
from holdfast.telemetry import FailureFileSink, LogSink, LogStyle, MetricsSink, Telemetry
from holdfast.telemetry.emitter import DEBUG_NOTICE, REST
from holdfast.telemetry.model import (
    ConnectionStarted,
    ConnectionStopped,
    ConnectionStopReason,
    Level,
    NotificationsReceived,
    RequestStarted,
    TelemetryRecord,
)
from holdfast.telemetry.redaction.redaction import Redactor
from holdfast.telemetry.testing import MemorySink, canaries

AT = 1_763_200_000.25
STAMP = "2025-11-15T09:46:40.250000+00:00"
IDS = Ids(request_id="r1", run_id="n1", task_id="t1", runner_type="codex")


class Leaked(
    Failure,
    code="TEST_LEAKED",
    kind=Kind.BROKEN,
    title="Leaked",
    user_message="The service said {text}.",
    actions=(Action.RETRY,),
):
    """A failure that carries what a service said."""

    text: str


@dataclass
class HandClock:
    """A clock that moves when it is told to."""

    at: float = AT

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at


class BrokenSink(MemorySink):
    """Fails as often as it is told to, and takes the time it is told to."""

    name = "broken"

    def __init__(self, clock: HandClock, *, fails: int = 0, takes: float = 0.0) -> None:
        super().__init__()
        self.clock, self.fails, self.takes, self.tried = clock, fails, takes, 0

    def take(self, record: TelemetryRecord) -> None:
        self.tried += 1
        self.clock.at += self.takes
        if self.fails:
            self.fails -= 1
            raise RuntimeError("no luck")
        super().take(record)


@pytest.mark.promise("T7")
@pytest.mark.promise("T3")
def test_a_failure_is_logged_once_with_its_ids() -> None:
    sink, clock = MemorySink(), HandClock()
    telemetry = Telemetry([sink], clock=clock)
    failure = Leaked(text="no").about(IDS).during("turn")

    telemetry.record(failure)
    telemetry.record(failure)

    assert [record.line() for record in sink.records] == [
        {
            "level": "error",
            "timestamp": STAMP,
            "event": "failure",
            "error_code": "TEST_LEAKED",
            "error_category": "TEST",
            "phase": "turn",
            "request_id": "r1",
            "run_id": "n1",
            "task_id": "t1",
            "runner_type": "codex",
            "recovery": "escalate",
            "retryable": False,
            "message": "A failure that carries what a service said (text='no')",
            "details": {"text": "no"},
        }
    ]
    assert sink.records[0].failure == to_wire(failure)
    assert failure.timestamp == AT


@pytest.mark.promise("T7")
def test_equal_failures_are_each_logged() -> None:
    sink = MemorySink()
    telemetry = Telemetry([sink], clock=HandClock())

    for _ in range(3):
        telemetry.record(Leaked(text="no"))
        gc.collect()

    assert len(sink.records) == 3


@pytest.mark.promise("T6")
@pytest.mark.promise("T7")
def test_no_canary_survives_in_anything_that_is_written(tmp_path: Path) -> None:
    """A key in a log line, an event, a report, a metric or an exception: grep finds none."""
    sinks = MemorySink(), MetricsSink(methods=["m"]), FailureFileSink(tmp_path / "failures")
    with (tmp_path / "json.log").open("w") as lines, (tmp_path / "human.log").open("w") as words:
        logs = (
            LogSink(lines, level=Level.DEBUG),
            LogSink(words, level=Level.DEBUG, style=LogStyle.HUMAN),
        )
        telemetry = Telemetry([*sinks, *logs], clock=HandClock(), debug=True)
        reports = [_tell_everything(telemetry, text) for _, text, _ in canaries(11)]
    (tmp_path / "report.json").write_bytes(msgspec.json.encode(reports))
    (tmp_path / "memory").write_text(sinks[0].written())
    (tmp_path / "metrics").write_bytes(sinks[1].exposition())

    secrets = [secret for _, _, secret in canaries(11)]
    (tmp_path.parent / "patterns").write_text("\n".join(secrets))
    grep = ["grep", "-rFf", str(tmp_path.parent / "patterns"), str(tmp_path)]
    found = subprocess.run(grep, capture_output=True, text=True, check=False)

    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
    assert len((tmp_path / "json.log").read_text().splitlines()) == 6 * len(secrets)


def _tell_everything(telemetry: Telemetry, text: str) -> object:
    telemetry.note(Level.INFO, f"saw {text}", fields={"output": [text], "nested": {"a": text}})
    telemetry.emit(ConnectionStarted(peer=text))
    telemetry.emit(RequestStarted(method=text, size=1, ids=Ids(session_id=text)))
    telemetry.record(Leaked(text=text).about(Ids(project_id=text)))
    telemetry.excerpt("prompt", text)
    try:
        with boundary("tool"):
            raise ValueError(text)
    except UnexpectedError as failure:
        telemetry.record(failure)
    return telemetry.report({"text": text, "list": [text]})


@pytest.mark.promise("T6")
def test_known_secrets_are_taken_out_of_events() -> None:
    sink = MemorySink()
    telemetry = Telemetry([sink], clock=HandClock(), redactor=Redactor(["swordfish-1"]))

    telemetry.emit(
        ConnectionStopped(peer="swordfish-1", reason=ConnectionStopReason.KILLED, duration=2.0)
    )

    assert sink.records == [
        TelemetryRecord(
            at=AT,
            level=Level.INFO,
            name="connection.stop",
            fields={"peer": "[redacted:known]", "reason": "killed", "duration": 2.0},
        )
    ]


@pytest.mark.promise("T6")
@pytest.mark.parametrize("debug", [False, True])
def test_raw_text_is_for_debug_mode_alone_which_says_so_on_every_line(debug: bool) -> None:
    sink = MemorySink()
    telemetry = Telemetry([sink], clock=HandClock(), debug=debug)

    telemetry.excerpt("prompt", "write a poem")
    telemetry.note(Level.INFO, "hello")
    telemetry.record(Leaked(text="x"))

    assert ("write a poem" in sink.written()) is debug
    assert [record.fields.get("debug") for record in sink.records] == (
        [DEBUG_NOTICE] * 3 if debug else [None] * 2
    )


def test_a_sink_that_fails_never_hurts_its_caller_nor_the_others() -> None:
    clock, memory = HandClock(), MemorySink()
    broken = BrokenSink(clock, fails=100)
    telemetry = Telemetry([broken, memory], clock=clock)

    for _ in range(10):
        telemetry.note(Level.INFO, "hello")

    assert broken.tried == 3
    assert [record.name for record in memory.records].count("note") == 10
    assert [r.fields["sink"] for r in memory.records if r.name == "telemetry.sink_left_out"] == [
        "broken"
    ]


def test_a_sink_that_recovers_is_used_again() -> None:
    clock = HandClock()
    broken = BrokenSink(clock, fails=3)
    telemetry = Telemetry([broken], clock=clock)
    for _ in range(4):
        telemetry.note(Level.INFO, "lost")
    clock.at += REST

    telemetry.note(Level.INFO, "back")

    assert [record.fields["message"] for record in broken.records] == ["back"]


def test_a_slow_sink_is_left_out() -> None:
    clock, memory = HandClock(), MemorySink()
    slow = BrokenSink(clock, takes=5.0)
    telemetry = Telemetry([slow, memory], clock=clock)

    for _ in range(6):
        telemetry.note(Level.INFO, "hello")

    assert slow.tried == 3
    assert [
        r.fields["error_code"] for r in memory.records if r.name == "telemetry.sink_left_out"
    ] == ["TELEMETRY_SINK_SLOW"]


@pytest.mark.promise("T7")
def test_a_failure_is_not_hidden_by_an_artefact_that_cannot_be_written() -> None:
    memory = MemorySink()
    telemetry = Telemetry([FailureFileSink(Path("/proc/nowhere")), memory], clock=HandClock())

    telemetry.record(Leaked(text="x"))

    assert [record.fields["error_code"] for record in memory.records] == ["TEST_LEAKED"]


@pytest.mark.parametrize(
    ("levels", "asked", "expected"),
    [
        ([], Level.ERROR, False),
        ([Level.INFO], Level.DEBUG, False),
        ([Level.INFO], Level.INFO, True),
        ([Level.ERROR, Level.DEBUG], Level.DEBUG, True),
    ],
)
def test_it_says_what_anyone_would_see(levels: list[Level], asked: Level, expected: bool) -> None:
    sinks = [MemorySink(level=level) for level in levels]
    telemetry = Telemetry(sinks, clock=HandClock())

    assert telemetry.wants(asked) is expected
    telemetry.emit(NotificationsReceived(method="m", count=3))
    assert [len(sink.records) for sink in sinks] == [level <= Level.DEBUG for level in levels]


def test_closing_closes_every_sink() -> None:
    sinks = [MemorySink(), MemorySink()]
    Telemetry(sinks, clock=HandClock()).close()

    assert [sink.is_closed for sink in sinks] == [True, True]


def test_the_room_is_light_until_a_sink_is_asked_for() -> None:
    program = (
        "import sys, holdfast.telemetry\n"
        "heavy = {'structlog', 'prometheus_client', 'opentelemetry'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "holdfast.telemetry.LogSink\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert done.stdout == "[]\n['structlog']\n"


def test_unknown_names_of_the_face_are_unknown() -> None:
    import holdfast.telemetry

    with pytest.raises(AttributeError, match="nothing"):
        holdfast.telemetry.nothing  # type: ignore[attr-defined]  # noqa: B018  # that is the point


def test_a_stream_without_a_descriptor_will_do() -> None:
    stream = io.StringIO()
    Telemetry([LogSink(stream)], clock=HandClock()).note(Level.INFO, "hello")

    assert msgspec.json.decode(stream.getvalue()) == {
        "timestamp": STAMP,
        "level": "info",
        "event": "note",
        "message": "hello",
    }
