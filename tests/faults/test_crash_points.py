"""Interrupt the keeper at every system call it makes on its files."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.world.journal_format import JournalRecord, encode_record, write_line
from tests.faults.forking import FORKS, ended, start
from tests.faults.keeper import LOG, SCHEMA, main_when_told
from tests.faults.verdict import Before, Told, complaints

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is missing: no system call can be interrupted"
)

RECORDS, SEED, SAMPLE = 6, 2, 110
OURS = ["", "log", "log.lock", "target", ".target.word.tmp", ".log.word.tmp"]
OURS += ["log.damaged-1", ".log.damaged-1.word.tmp"]

OPENING = b'{"format":1,"log":"%b","schema":"%b","repairs":{}}' % (
    LOG.encode(),
    SCHEMA.name.encode(),
)
LINES = [
    write_line(JournalRecord(0, 1, 1, OPENING, is_opening=True)),
    *(write_line(JournalRecord(seq, 1, 1, encode_record([100 + seq, "old"]))) for seq in (1, 2, 3)),
]
SCENARIOS = {
    "new": Before(),
    "torn": Before((101, 102), b"".join(LINES)[:-9]),
    "damaged": Before((101, 103), b"".join(LINES).replace(b"[102", b"[999")),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One system call to interfere with, and how."""

    call: str
    number: int
    fault: str

    @property
    def is_refusal(self) -> bool:
        """Whether the call said that it did not do what was asked."""
        return self.fault.startswith("error=")


def run(root: Path, *, strace: list[str], habits: tuple[str, ...] = ()) -> Told:
    """Run a keeper under a tracer, which is attached once all its modules are loaded."""
    output = root.with_name(f"{root.name}.output")
    waits, tells = FORKS.Pipe(duplex=False)
    args = (root, RECORDS, list(habits), output, waits)
    keeper = FORKS.Process(target=main_when_told, args=args)
    start(keeper)
    paths = [word for name in OURS for word in ("-P", str(root / name))]
    with subprocess.Popen(
        ["strace", "-p", str(keeper.pid), *strace, *paths], stderr=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stderr is not None
        first = tracer.stderr.readline()
        tells.send_bytes(b"go")
        status = ended(keeper)
        said = tracer.stderr.read()
    assert "attached" in first, first
    assert status in {0, -9}, said
    return Told.parse(output.read_text())


def points(base: Path, before: Before) -> list[Point]:
    """Every system call of an undisturbed run, with each fault that makes sense there."""
    before.lay_out(base / "plain")
    trace = base / "trace"
    told = run(base / "plain", strace=["-o", str(trace)])
    assert told.kept == list(range(1, RECORDS + 1)), told
    calls = Counter(re.findall(r"^(\w+)\(", trace.read_text(), re.MULTILINE))
    return [
        Point(call, number, fault)
        for call, count in sorted(calls.items())
        for number in range(1, count + 1)
        for fault in faults(call)
    ]


def faults(call: str) -> list[str]:
    every = ["signal=KILL", "error=EIO", "error=ENOSPC"]
    match call:
        case "write":
            return [*every, "error=EDQUOT", "error=EROFS", "retval=5", "retval=0"]
        case _:
            return every


def interfere(
    base: Path, before: Before, point: Point, habits: tuple[str, ...] = ()
) -> tuple[Point, list[str]]:
    root = base / f"{point.call}-{point.number}-{point.fault}"
    before.lay_out(root)
    inject = f"inject={point.call}:{point.fault}:when={point.number}"
    trace = base / f"{root.name}.trace"
    output = ["-o", str(trace), "-e", f"trace={point.call}", "-e", inject]
    told = run(root, strace=output, habits=habits)
    assert re.search(r"\(INJECTED\)|killed by SIGKILL", trace.read_text()), f"{point} did nothing"
    wrong = complaints(root, before, told)
    names = {path.name for path in root.iterdir()}
    if point.is_refusal and point.call != "unlink" and ".target.word.tmp" in names:
        wrong.append("a temporary file was left behind")
    if point.call == "write" and point.is_refusal and told.failed_numbers("kept"):
        failed = told.failed_numbers("kept")
        data = (root / "log").read_bytes()
        if any(b'"record":[%d,' % number in data for number in failed):
            wrong.append("a record that was refused is there")
    shutil.rmtree(root)
    return point, wrong


def sweep(
    base: Path, before: Before, chosen: list[Point], habits: tuple[str, ...] = ()
) -> dict[Point, list[str]]:
    with ThreadPoolExecutor(2) as workers:
        outcomes = workers.map(lambda point: interfere(base, before, point, habits), chosen)
        return {point: wrong for point, wrong in outcomes if wrong}


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_system_call_can_cost_an_acknowledged_record(name: str, tmp_path: Path) -> None:
    every = points(tmp_path, SCENARIOS[name])
    chosen = random.Random(SEED).sample(every, min(SAMPLE, len(every)))

    assert sweep(tmp_path, SCENARIOS[name], chosen) == {}


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_system_call_at_all_can_cost_an_acknowledged_record(name: str, tmp_path: Path) -> None:
    assert sweep(tmp_path, SCENARIOS[name], points(tmp_path, SCENARIOS[name])) == {}


def test_a_keeper_that_speaks_too_early_is_caught(tmp_path: Path) -> None:
    before = SCENARIOS["new"]
    chosen = [Point("write", number, "signal=KILL") for number in (2, 3)]

    assert len(sweep(tmp_path, before, chosen, ("early",))) == 2
