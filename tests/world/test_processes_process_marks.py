"""Everything that belongs to a mark is ended, however far from its parents; nobody else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from holdfast.world import environment_of, system_processes
from holdfast.world.processes import MARK, SweepResult, agents, sweep
from tests.exec.server.talking import until
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

# Each line starts what it says in the background and writes its number; {} is a file for that.
ESCAPES = {
    "setsid": "setsid sh -c 'echo $$ > {}; exec sleep 300' &",
    "setsid, its parents gone": "(setsid sh -c 'echo $$ > {}; exec sleep 300' &) &",
    "another environment": "env -i sh -c 'echo $$ > {}; exec sleep 300' &",
    "another environment, its parents gone": "(env -i sh -c 'echo $$ > {}; exec sleep 300' &) &",
    "another environment and setsid": "env -i setsid sh -c 'echo $$ > {}; exec sleep 300' &",
    "stopped": "setsid sh -c 'echo $$ > {}; kill -STOP $$; exec sleep 300' &",
    "deaf": "setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > {}; sleep 300; sleep 300' &",
}
# Forks a child that forks a child, and so on: between two looks there is always a new one.
HYDRA = """
import os, sys, time
os.setsid()
for _ in range(100_000):
    if os.fork():
        time.sleep(0.001)
        os._exit(0)
"""


@contextmanager
def marked(line: str, mark: str) -> Generator[subprocess.Popen[bytes]]:
    """A shell that leads a session, as every process of the keeper does, and stays."""
    with subprocess.Popen(
        ["sh", "-c", f"{line}\nsleep 300"],
        env={**os.environ, MARK: mark},
        start_new_session=True,
    ) as shell:
        try:
            yield shell
        finally:
            with suppress(ProcessLookupError):
                shell.kill()


@pytest.mark.promise("A11", "A12", "X14")
@pytest.mark.parametrize("line", ESCAPES.values(), ids=ESCAPES)
async def test_what_a_marked_process_started_is_ended(line: str, tmp_path: Path) -> None:
    mark, pid = uuid.uuid4().hex, tmp_path / "pid"
    with marked(line.replace("{}", str(pid)), f"{mark}/1"):
        await until(lambda: pid.exists() and pid.read_text().endswith("\n"), within=60)
        ended = sweep(mark)
        assert not is_alive(int(pid.read_text()))
        assert ended.killed >= 2
        assert ended.left == ()
    assert sweep(mark) == SweepResult(0)


@pytest.mark.promise("A12", "X14")
async def test_what_never_stops_forking_is_ended() -> None:
    mark = uuid.uuid4().hex
    with subprocess.Popen([sys.executable, "-c", HYDRA], env={**os.environ, MARK: mark}) as first:  # noqa: ASYNC220  # at once
        first.wait()  # its child goes on
        await until(lambda: bool(agents(mark)), within=60)
        assert sweep(mark).left == ()
        assert not [
            each.pid
            for each in system_processes()
            if not each.is_dead and f"{MARK}={mark}".encode() in environment_of(each.pid)
        ]


@pytest.mark.promise("A11")
async def test_what_outlives_its_parents_is_ended_and_nobody_else(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    line = f"setsid sleep 300 & echo $! > {tmp_path / 'pid'}"
    subprocess.run(["sh", "-c", line], env={**os.environ, MARK: f"{mark}/1"}, check=True)  # noqa: ASYNC221  # at once
    with subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: f"{mark}1"}) as other:  # noqa: ASYNC220  # at once
        pid = int((tmp_path / "pid").read_text())
        try:
            assert sweep(mark).killed == 1
            assert not is_alive(pid)
            assert sweep(mark) == SweepResult(0)
            assert other.poll() is None
        finally:
            other.send_signal(signal.SIGKILL)


async def test_members_of_a_session_that_a_marked_process_joined_are_left_alone() -> None:
    mark = uuid.uuid4().hex
    joined = f"{MARK}={mark} sleep 300 & sleep 300"
    with subprocess.Popen(["sh", "-c", joined], start_new_session=True) as shell:  # noqa: ASYNC220  # at once
        try:
            await until(lambda: bool(agents(mark)), within=60)
            assert sweep(mark).killed == 1
            assert shell.poll() is None
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
