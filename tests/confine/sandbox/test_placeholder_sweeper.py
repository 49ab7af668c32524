"""Whatever is killed, placeholders go by themselves; nothing else need start or be asked."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast.confine.sandbox.placeholder_sweeper import is_sweeper, watch
from holdfast.confine.sandbox.placeholders import Placeholders
from holdfast.world import command_of, system_processes
from tests.cli.planes import eventually
from tests.confine.sandbox.test_placeholders import NAMES, die_after, names_in

pytestmark = pytest.mark.promise("X14")
if sys.platform != "linux":
    pytest.skip("there are no sandboxes here", allow_module_level=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / ".git").mkdir(parents=True)
    return tmp_path / "workspace"


def sweepers(state: Path) -> list[str]:
    commands = (command_of(each.pid) for each in system_processes() if not each.is_dead)
    return [each for each in commands if is_sweeper(each) and str(state) in each]


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_a_kill_at_any_moment_leaves_nothing_after_a_while(
    workspace: Path, tmp_path: Path, steps: int
) -> None:
    state = tmp_path / "state"
    placeholders = Placeholders(state, watch=watch)
    pid = os.fork()
    if pid == 0:
        die_after(steps)
        placeholders.hold({str(workspace): NAMES}, root=None)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

    eventually(lambda: names_in(workspace) == {".git"})
    eventually(lambda: not sweepers(state))


def test_a_living_process_of_the_sandbox_keeps_them(workspace: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        Placeholders(state, watch=watch).hold({str(workspace): NAMES}, root=None)
        if os.fork():
            os.kill(os.getpid(), signal.SIGKILL)
        os.close(writes)
        os.read(reads, 1)  # the child has the sign of life, too
        os._exit(0)
    os.waitpid(pid, 0)
    eventually(lambda: ".codex" in names_in(workspace))
    assert len(sweepers(state)) == 1
    os.close(reads)
    os.close(writes)

    eventually(lambda: names_in(workspace) == {".git"})


def test_what_is_given_back_in_good_order_needs_no_sweeping(
    workspace: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    placeholders = Placeholders(state, watch=watch)
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    placeholders.release(alive)

    assert names_in(workspace) == {".git"}
    eventually(lambda: not sweepers(state))


def test_what_needs_no_placeholder_needs_no_sweeper(tmp_path: Path) -> None:
    asked: list[str] = []
    placeholders = Placeholders(tmp_path / "state", watch=lambda _, sign: asked.append(sign))
    alive, _ = placeholders.hold({}, root=None)
    placeholders.release(alive)

    assert asked == []


def test_what_waits_for_the_end_does_not_put_it_off(workspace: Path, tmp_path: Path) -> None:
    """A watcher that the machine lets wait with its lock is not taken for the sandbox."""
    signs: list[str] = []
    placeholders = Placeholders(tmp_path / "state", watch=lambda _, sign: signs.append(sign))
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    with open(signs[0], "rb") as waiting:
        os.close(alive)
        fcntl.flock(waiting, fcntl.LOCK_SH)  # as the watcher does once the last copy is closed
        placeholders.clean()

        assert names_in(workspace) == {".git"}
