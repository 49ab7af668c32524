"""Kill servers at any system call while a process pours into a ring: no byte is lost or moved."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from holdfast.exec.keeper.discovery import has_keeper
from tests.exec.server.talking import end_keeper
from tests.faults.forking import FORKS, ended, start
from tests.faults.pouring import complaints, main_when_told

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here"),
    pytest.mark.skipif(
        shutil.which("strace") is None,
        reason="strace is missing: no system call can be interrupted",
    ),
]

SIZE = 48_000_000  # more than two turns of a ring
# How often each is called at most before the second turn of the ring begins.
CALLS = {"splice": 40, "pwrite64": 40, "pread64": 40, "lseek": 4, "sendmsg": 4}

Point = tuple[str, int]


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("noise") / "noise"
    path.write_bytes(os.urandom(SIZE))
    return path


def run(state: Path, noise: Path, point: Point | None, *habits: str) -> int | None:
    """Run the stand-in, and kill it at that system call."""
    tells, waits = FORKS.Pipe()
    server = FORKS.Process(target=main_when_told, args=(state, noise, list(habits), waits))
    start(server)
    tells.recv_bytes()
    if point is None:
        tells.send_bytes(b"go")
        return ended(server)
    call, number = point
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}"]
    with subprocess.Popen(
        ["strace", "-o", os.devnull, "-p", str(server.pid), *inject],
        stderr=subprocess.PIPE,
        text=True,
    ) as tracer:
        assert tracer.stderr is not None
        assert "attached" in tracer.stderr.readline()
        tells.send_bytes(b"go")
        status = ended(server)
        tracer.stderr.read()
    return status


def killed_at(base: Path, noise: Path, points: Iterable[Point], *habits: str) -> list[str]:
    """What is wrong after one server after the other was killed, and the last finished."""
    state = base / "state"
    try:
        for point in points:
            status = run(state, noise, point, *habits)
            if status == 0:
                break
            if status != -9:
                return [f"it ended {status} by itself, before {point}"]
        status = run(state, noise, None, *habits)
        if status != 0:
            return [f"the last ended {status}"]
        return complaints(state, noise.read_bytes())
    finally:
        if has_keeper(state):  # the last was to end it
            anyio.run(end_keeper, state)
        shutil.rmtree(state)


def chosen(chance: random.Random, count: int) -> list[Point]:
    calls = chance.choices(list(CALLS), k=count)
    return [(call, chance.randint(1, CALLS[call])) for call in calls]


@pytest.mark.promise("X13")
def test_who_pours_into_a_ring_loses_nothing_to_killed_servers(tmp_path: Path, noise: Path) -> None:
    points = [("splice", 30), ("lseek", 2), *chosen(random.Random(7), 4)]

    assert killed_at(tmp_path, noise, points) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.promise("X13")
def test_who_pours_into_a_ring_loses_nothing_wherever_servers_are_killed(
    tmp_path: Path, noise: Path
) -> None:
    every = [(call, number) for call, count in CALLS.items() for number in range(1, count + 1)]
    chance = random.Random(8)
    wrong = {point: killed_at(tmp_path, noise, [point]) for point in every}
    wrong |= {
        ("chain", number): killed_at(tmp_path, noise, chosen(chance, 8)) for number in range(40)
    }

    assert {point: found for point, found in wrong.items() if found} == {}


def test_a_position_that_nobody_else_holds_is_missed(tmp_path: Path, noise: Path) -> None:
    # However little each move brings, the file has become a ring before the last of them.
    assert killed_at(tmp_path, noise, [("splice", 40)] * 8, "alone") != []
