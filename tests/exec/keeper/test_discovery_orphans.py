"""Processes whose keeper is gone are found anywhere on the machine, and nobody else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.exec.keeper.discovery import kill, kill_held, orphans
from holdfast.exec.keeper.protocol import MARK, KeeperName
from tests.exec.planes import keeping_in, shell

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here"),
]

TRIES = 10  # other tests end whatever has no keeper any more
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
    assert any(is_found_and_killed(keeper, is_orphan=is_orphan) for _ in range(TRIES))


def is_found_and_killed(keeper: KeeperName, *, is_orphan: bool) -> bool:
    """Whether it was us, and nobody else on this machine who ends orphans, that ended it."""
    key = f"orphan-{os.getpid()}"
    env = {MARK: f"{key}@{keeper}"}
    with subprocess.Popen(["/bin/sleep", "60"], env=env) as process:
        found = [each for each in orphans() if each.key == key]
        expected = [(process.pid, keeper, "/bin/sleep 60")] if is_orphan else []
        if is_orphan and process.poll() is not None:
            return False
        assert [(each.process.pid, each.keeper, each.command) for each in found] == expected

        is_ours = kill(found) == len(expected)
        if not is_orphan:
            assert [each.process.pid for each in kill_held(keeper)] == [process.pid]
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert kill(found) == 0
    return is_ours


async def test_a_process_of_a_living_keeper_is_no_orphan(tmp_path: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await keeper.start(shell(f"held-{os.getpid()}", "exec sleep 60"))

        assert [each for each in orphans() if each.key == kept.key] == []
