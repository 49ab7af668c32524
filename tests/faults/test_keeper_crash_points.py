"""Kill the server at every system call it makes: its processes and their output outlive it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.forking import FORKS, ended, start
from tests.faults.stand_in import complaints, main_when_told

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here"),
    pytest.mark.skipif(
        shutil.which("strace") is None,
        reason="strace is missing: no system call can be interrupted",
    ),
]

PROCESSES, LINES, SEED, SAMPLE = 3, 400, 4, 24

Point = tuple[str, int]


def run(state: Path, *habits: str, strace: list[str] | None = None) -> int | None:
    """Run the stand-in, under a tracer that is attached once all its modules are loaded."""
    tells, waits = FORKS.Pipe()
    args = (state, PROCESSES, LINES, list(habits), waits)
    server = FORKS.Process(target=main_when_told, args=args)
    start(server)
    tells.recv_bytes()
    if strace is None:
        tells.send_bytes(b"go")
        return ended(server)
    with subprocess.Popen(
        ["strace", "-p", str(server.pid), *strace], stderr=subprocess.PIPE, text=True
    ) as tracer:
        assert tracer.stderr is not None
        assert "attached" in tracer.stderr.readline()
        tells.send_bytes(b"go")
        status = ended(server)
        tracer.stderr.read()
    return status


def points(base: Path) -> list[Point]:
    """Every system call of an undisturbed run."""
    assert run(base / "plain", strace=["-o", str(base / "trace")]) == 0
    calls = Counter(re.findall(r"^(\w+)\(", (base / "trace").read_text(), re.MULTILINE))
    return [
        (call, number) for call, count in sorted(calls.items()) for number in range(1, count + 1)
    ]


def interrupted(base: Path, point: Point, *habits: str) -> list[str]:
    """What is wrong after a server was killed there and another finished the work."""
    call, number = point
    state = base / f"{call}-{number}"
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
    first = run(state, *habits, strace=["-o", str(base / f"{call}-{number}.trace"), *inject])
    if first == 0:  # this time it did without that call
        return complaints(state, PROCESSES, LINES)
    assert first == -9
    again = run(state, *habits)
    return complaints(state, PROCESSES, LINES) if again == 0 else [f"the next one ended {again}"]


def sweep(base: Path, chosen: list[Point], *habits: str) -> dict[Point, list[str]]:
    with ThreadPoolExecutor(2) as workers:
        outcomes = workers.map(lambda point: interrupted(base, point, *habits), chosen)
        return {point: wrong for point, wrong in zip(chosen, outcomes, strict=True) if wrong}


@pytest.mark.promise("X13")
def test_no_system_call_can_cost_a_byte(tmp_path: Path) -> None:
    every = points(tmp_path)
    moves = [point for point in every if point[0] in {"splice", "pwrite64", "sendmsg"}]
    chance = random.Random(SEED)
    chosen = chance.sample(moves, min(SAMPLE // 2, len(moves))) + chance.sample(every, SAMPLE // 2)

    assert sweep(tmp_path, chosen) == {}


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.promise("X13")
def test_no_system_call_at_all_can_cost_a_byte(tmp_path: Path) -> None:
    assert sweep(tmp_path, points(tmp_path)) == {}


def test_output_that_is_only_in_memory_is_missed(tmp_path: Path) -> None:
    chosen = [("pwrite64", number) for number in range(6, 18)]

    assert sweep(tmp_path, chosen, "read-then-append") != {}
