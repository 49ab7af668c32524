"""What bubblewrap leaves behind when it is killed as it starts is found, and nothing else."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.policy import SandboxPolicy, Strength
from holdfast.confine.sandbox.placeholder_sweeper import clean
from holdfast.confine.sandbox.placeholders import end_stranded
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import prepare_sandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has bubblewrap"),
    pytest.mark.skipif(
        preflight().strength is not Strength.FULL,
        reason=f"no full sandbox on this machine: {'; '.join(preflight().reasons)}",
    ),
]


def _full() -> tuple[int, int]:
    """A pipe into which nobody can write another byte, and its reader."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writes, bytes(4096))
    os.set_blocking(writes, True)
    return reads, writes


def _child_of(pid: int) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            return int(children[0])
        os.sched_yield()
    raise AssertionError("there is no child")


def _has_died(life: int) -> bool:
    return bool(select.select([life], [], [], 30)[0])


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_who_waits_for_a_dead_maker_is_ended_and_its_names_are_removed(
    tmp_path: Path, is_cleaned: bool
) -> None:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    for path in (workspace, state):
        path.mkdir()
    entry = ProcessEntry(["true"], {"PATH": "/usr/bin:/bin"}, str(workspace), "true")
    shut = prepare_sandbox(entry, SandboxPolicy(writable=(str(workspace),)), state=state)
    reads, writes = _full()  # it never comes to the end of what it tells before it goes on
    told = max(shut.entry.files.values()) + 1
    words = [shut.entry.argv[0], "--info-fd", str(told), *shut.entry.argv[1:]]
    files = {**shut.entry.files, writes: told}
    maker = enter(replace(shut.entry, argv=words, files=files))
    waiting = os.pidfd_open(_child_of(maker))
    (sign,) = (state / "placeholders").glob("*.needed")

    assert end_stranded(sign) == 0, "its maker lives"
    os.kill(maker, signal.SIGKILL)
    os.waitpid(maker, 0)
    if is_cleaned:
        clean(state)
        assert _has_died(waiting)
    shut.close()

    assert _has_died(waiting)
    assert list(workspace.iterdir()) == []
    for descriptor in (reads, writes, waiting):
        os.close(descriptor)
