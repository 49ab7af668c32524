"""Whoever descends from a process is found and killed, wherever it has gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.rpc.transports.launch import MARK, ProcessTree, marked

pytestmark = pytest.mark.anyio

WAITS = "import signal\nwhile True: signal.pause()"
SAYS_READY = "import os; os.write(1, b'%d\\n' % os.getpid());"


@contextmanager
def tree(script: str) -> Generator[tuple[ProcessTree, int]]:
    """A tree whose root runs this, and the process id that the first to be ready says."""
    command = [sys.executable, "-I", "-S", "-c", script]
    environment = marked({"PATH": "/usr/bin"}, "test-mark")
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE
    ) as root:
        try:
            assert root.stdout is not None
            yield ProcessTree.of(root.pid, "test-mark"), int(root.stdout.readline())
        finally:
            root.kill()


def pids(it: ProcessTree) -> set[int]:
    return {process.pid for process in it.members()}


SAME_SESSION = f"import os; os.fork(); {SAYS_READY} {WAITS}"
OWN_SESSION = f"import os; os.fork() or os.setsid(); {SAYS_READY} {WAITS}"
ORPHAN = f"""
import os
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        {SAYS_READY}
        {WAITS.replace(chr(10), chr(10) + "        ")}
    os._exit(0)
os.wait()
{WAITS}
"""
FORKS_WITHOUT_END = f"""
import os
{SAYS_READY}
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
    else:
        break
{WAITS}
"""


@pytest.mark.parametrize(
    "script", [SAME_SESSION, OWN_SESSION, ORPHAN], ids=["same session", "own session", "orphan"]
)
async def test_a_descendant_is_found_and_killed(script: str) -> None:
    with tree(script) as (it, ready):
        assert {it.root, ready} <= pids(it)
        await it.kill(patience=10.0)
        assert pids(it) == set()


async def test_one_who_forks_all_the_time_does_not_get_away() -> None:
    with tree(FORKS_WITHOUT_END) as (it, _):
        await it.kill(patience=10.0)
        assert pids(it) == set()


async def test_nobody_gets_to_react_to_the_death_of_another(tmp_path: Path) -> None:
    # The youngest learns by the end of a pipe that the oldest has died.
    watches = f"""
import os, signal
end, life = os.pipe()
for number in range(100):
    if os.fork() == 0:
        os.setsid()
        if number > 0:
            os.close(life)
        if number == 99:
            {SAYS_READY}
            os.read(end, 1)
            os.open({str(tmp_path / "restarted")!r}, os.O_CREAT)
        {WAITS.replace(chr(10), chr(10) + "        ")}
os.close(life)
{WAITS}
"""
    with tree(watches) as (it, _):
        await it.kill(patience=30.0)

    assert os.listdir(tmp_path) == []


async def test_the_dead_are_no_members() -> None:
    with tree(f"{SAYS_READY}") as (it, _), anyio.fail_after(60):
        while pids(it):  # noqa: ASYNC110  # the kernel sets no event of ours
            await anyio.sleep(0.005)


async def test_strangers_are_left_alone() -> None:
    with tree(SAYS_READY + WAITS) as (it, _), tree(SAYS_READY + WAITS) as (_, other):
        mine = ProcessTree(it.root, started=it.started, mark="another-mark")
        assert pids(mine) == {it.root}
        await mine.kill(patience=10.0)
        os.kill(other, 0)


def test_an_environment_keeps_the_marks_of_those_above() -> None:
    once = marked({"A": "1"}, "outer")
    twice = marked(once, "inner")

    assert (once, twice) == ({"A": "1", MARK: "outer"}, {"A": "1", MARK: "outer:inner"})
