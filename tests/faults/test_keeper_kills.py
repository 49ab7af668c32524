"""Kill the server at random while its processes print: no line is lost, doubled or moved."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.exec.keeper.discovery import orphans
from tests.faults.stand_in import complaints
from tests.shape.source import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here")

BETWEEN_KILLS_LONGEST = 0.15


def stand_in(state: Path, processes: int, lines: int, *habits: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.faults.stand_in", str(state)]
    started = subprocess.Popen(
        [*command, str(processes), str(lines), *habits], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    return started


def killed_at_random(
    state: Path, processes: int, lines: int, *habits: str, kills: int, seed: int
) -> int:
    """Run it again and again, and kill it each time but the last; say how often that worked."""
    chance = random.Random(seed)
    count = 0
    for _ in range(kills):
        with stand_in(state, processes, lines, *habits) as server:
            try:
                server.wait(timeout=chance.uniform(0.0, BETWEEN_KILLS_LONGEST))
            except subprocess.TimeoutExpired:
                server.kill()
                count += 1
            else:
                return count
    with stand_in(state, processes, lines, *habits) as server:
        assert server.wait(timeout=100) == 0
    return count


@pytest.mark.promise("X13")
def test_no_line_is_lost_to_a_killed_server(tmp_path: Path) -> None:
    state, processes, lines = tmp_path / "state", 24, 10_000

    kills = killed_at_random(state, processes, lines, kills=8, seed=1)

    assert kills >= 3
    assert complaints(state, processes, lines) == []
    assert [each for each in orphans() if each.key.startswith("printer-")] == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.promise("X13")
def test_no_line_is_lost_to_a_server_killed_often(tmp_path: Path) -> None:
    state, processes, lines = tmp_path / "state", 50, 30_000

    kills = killed_at_random(state, processes, lines, kills=200, seed=2)

    assert kills >= 20
    assert complaints(state, processes, lines) == []
