"""Failures are kept where they can be read later, by their owner alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.failures import Failure, Ids
from holdfast.telemetry.emitter import Telemetry
from holdfast.telemetry.failure_file import FailureFileSink, read_failures
from holdfast.telemetry.failures import SinkSlow, TelemetryExtraMissing
from holdfast.telemetry.model import Level, TelemetryRecord
from holdfast.world import SystemClock


def failing(number: int) -> Failure:
    return SinkSlow(sink=f"s{number}", seconds=2.0).about(Ids(run_id=f"r{number}")).during("p")


def record(sink: FailureFileSink, *failures: Failure) -> None:
    telemetry = Telemetry([sink], clock=SystemClock())
    for failure in failures:
        telemetry.record(failure)


@pytest.mark.promise("T7")
def test_a_failure_can_be_read_later_as_it_was(tmp_path: Path) -> None:
    failures = [failing(1), TelemetryExtraMissing(service="x", extra="otel"), failing(2)]
    record(FailureFileSink(tmp_path / "kept"), *failures)

    kept = list(read_failures(tmp_path / "kept"))
    assert kept == failures
    assert [failure.timestamp for failure in kept] == pytest.approx([f.timestamp for f in failures])


@pytest.mark.promise("T7")
def test_only_the_owner_may_read(tmp_path: Path) -> None:
    record(FailureFileSink(tmp_path / "kept"), failing(1))

    modes = [oct(path.stat().st_mode & 0o777) for path in sorted((tmp_path / "kept").rglob("*"))]
    assert (oct((tmp_path / "kept").stat().st_mode & 0o777), modes) == ("0o700", ["0o600"])


def test_several_may_keep_failures_at_once(tmp_path: Path) -> None:
    kept = TelemetryRecord(
        at=0.0, level=Level.ERROR, name="failure", fields={}, failure={"code": "A_B"}
    )

    def keep(_: int) -> None:
        sink = FailureFileSink(tmp_path, bytes_max=100)
        for _ in range(50):
            sink.take(kept)
            list(read_failures(tmp_path))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(keep, range(4))) == [None] * 4


def test_size_is_bounded_and_the_newest_stay(tmp_path: Path) -> None:
    record(FailureFileSink(tmp_path, bytes_max=4000), *(failing(number) for number in range(200)))

    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 4
    assert max(sizes) <= 4000
    kept = [str(failure.details["sink"]) for failure in read_failures(tmp_path)]
    assert kept == [f"s{number}" for number in range(200 - len(kept), 200)]


@pytest.mark.parametrize(
    "damage", [b'{"code": "TEL', b"\0\0\0", b"\xff\xfe{}", b'{"code": "\xff"}', b"[]"]
)
def test_a_damaged_line_costs_only_itself(tmp_path: Path, damage: bytes) -> None:
    sink = FailureFileSink(tmp_path)
    record(sink, failing(1))
    with (tmp_path / "failures.jsonl").open("ab") as file:
        file.write(damage)
    record(sink, failing(2))

    assert [failure.details["sink"] for failure in read_failures(tmp_path)] == ["s1", "s2"]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "kept").mkdir()
    os.symlink(target, tmp_path / "kept" / "failures.jsonl")
    record(FailureFileSink(tmp_path / "kept"), failing(1))

    assert target.read_text() == "mine"


@pytest.mark.promise("T7")
def test_it_is_on_the_disk_before_the_caller_goes_on(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is missing: whether the file is synced cannot be seen")
    program = (
        "import sys, os; from pathlib import Path\n"
        "from holdfast.telemetry import FailureFileSink, Telemetry\n"
        "from holdfast.telemetry.failures import SinkSlow\n"
        "from holdfast.world import SystemClock\n"
        "door = Telemetry([FailureFileSink(Path(sys.argv[1]))], clock=SystemClock())\n"
        "door.record(SinkSlow(sink='s', seconds=2.0)); os.write(1, b'went on')\n"
    )
    calls = subprocess.run(
        [
            strace,
            "-f",
            "-e",
            "trace=write,fsync",
            sys.executable,
            "-c",
            program,
            str(tmp_path / "kept"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    order = [
        name
        for line in calls.splitlines()
        for name, sign in (("line", "TELEMETRY_SINK_SLOW"), ("fsync", "fsync("), ("on", "went on"))
        if sign in line or (name == "line" and "write(" in line and '{\\"code' in line)
    ]

    assert order == ["line", "fsync", "fsync", "on"]
