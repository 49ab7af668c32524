"""Processes whose keeper is gone are found anywhere on the machine, and nobody else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.exec.keeper.protocol import MARK, KeeperName
from holdfast.exec.orphans import kill, kill_held, orphans
from tests.exec.planes import keeping_in, shell

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here"),
]

HERE = KeeperName.own() if sys.platform == "linux" else KeeperName(0, 0, 0)


@pytest.mark.parametrize(
    ("keeper", "is_orphan"),
    [
        (HERE, False),
        (HERE._replace(started=1), True),
        (HERE._replace(pid=2**22 + 1), True),
        (HERE._replace(started=1, namespace=7), False),
    ],
    ids=["it lives", "its number was given away", "it is gone", "we cannot see it"],
)
def test_who_is_an_orphan(keeper: KeeperName, is_orphan: bool) -> None:
    key = f"orphan-{os.getpid()}"
    env = {MARK: f"{key}@{keeper}"}
    with subprocess.Popen(["/bin/sleep", "60"], env=env) as process:
        found = [each for each in orphans() if each.key == key]
        expected = [(process.pid, keeper, "/bin/sleep 60")] if is_orphan else []
        assert [(each.process.pid, each.keeper, each.command) for each in found] == expected

        assert kill(found) == len(expected)
        if not is_orphan:
            assert [each.process.pid for each in kill_held(keeper)] == [process.pid]
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert kill(found) == 0


async def test_a_process_of_a_living_keeper_is_no_orphan(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeping:
        kept = await keeping.start(shell(f"held-{os.getpid()}", "exec sleep 60"))

        assert [each for each in orphans() if each.key == kept.key] == []
