"""Whoever listens at the socket of a session is ended, also if they answer nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from holdfast.host.supervision import end_host

pytestmark = pytest.mark.anyio
LISTEN = """
import socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("listening", flush=True)
time.sleep(600)
"""


@pytest.mark.promise("A5")
@pytest.mark.parametrize("is_stopped", [False, True])
async def test_who_answers_nothing_is_ended(tmp_path: Path, is_stopped: bool) -> None:
    path = tmp_path / "host.sock"
    command = [sys.executable, "-c", LISTEN, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as listener:  # noqa: ASYNC220  # at once
        assert listener.stdout is not None
        assert listener.stdout.readline() == b"listening\n"
        if is_stopped:
            os.kill(listener.pid, signal.SIGSTOP)

        with anyio.fail_after(60):
            await end_host(path)

        assert listener.wait(60) == -signal.SIGKILL


CLOSE = LISTEN.replace("sleep(600)", "sleep(float(sys.argv[2]))")


@pytest.mark.parametrize(("closes_after", "status"), [(0.5, 0), (600, -signal.SIGKILL)])
async def test_a_host_that_closes_within_its_grace_is_not_killed(
    tmp_path: Path, closes_after: float, status: int
) -> None:
    path = tmp_path / "host.sock"
    grace = 60.0 if status == 0 else 0.2
    command = [sys.executable, "-c", CLOSE, str(path), str(closes_after)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:  # noqa: ASYNC220  # at once
        assert host.stdout is not None
        assert host.stdout.readline() == b"listening\n"

        with anyio.fail_after(90):
            await end_host(path, grace=grace)

        assert host.wait(60) == status


async def test_where_nobody_listens_there_is_nothing_to_end(tmp_path: Path) -> None:
    await end_host(tmp_path / "host.sock")
