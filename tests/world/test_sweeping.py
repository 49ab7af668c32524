"""Everything that carries a mark is ended, however far from its parents; nobody else is."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from holdfast.world.sweeping import MARK, sweep
from tests.exec.server.talking import until
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.mark.promise("A11")
async def test_what_outlives_its_parents_is_ended_and_nobody_else(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    line = f"setsid sleep 300 & echo $! > {tmp_path / 'pid'}"
    subprocess.run(["sh", "-c", line], env={**os.environ, MARK: f"{mark}/1"}, check=True)  # noqa: ASYNC221  # at once
    with subprocess.Popen(["sleep", "300"], env={**os.environ, MARK: f"{mark}1"}) as other:  # noqa: ASYNC220  # at once
        pid = int((tmp_path / "pid").read_text())
        try:
            assert sweep(mark) == 1
            await until(lambda: not is_alive(pid))
            assert sweep(mark) == 0
            assert other.poll() is None
        finally:
            other.send_signal(signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
