"""What is asked to end ends as it likes, and whoever waits for it is told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from holdfast.cli.commands.running_parts import address, belongings
from holdfast.cli.commands.stop import ask_to_end, has_ended
from holdfast.cli.render.stop import Sort
from holdfast.world import system_process
from tests.cli.planes import eventually, plane_home, running


def test_a_server_that_listens_at_a_path_tells_whoever_waits() -> None:
    script = "trap 'echo so long; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with plane_home() as home, running("exec", "--", "sh", "-c", script, home=home) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        found = belongings(home / "state")
        servers = [each.pid for each in found if each.sort is Sort.SERVER]
        ask_to_end(found)

        assert [address(pid) for pid in servers] == [f"unix://{home}/run/exec.sock"]
        assert (process.wait(timeout=60), process.stdout.read()) == (9, b"so long\n")


def test_who_listens_nowhere_has_no_address(tmp_path: Path) -> None:
    assert tmp_path.exists()
    assert address(os.getpid()) is None
    ask_to_end([])


def test_who_is_gone_has_ended_and_who_lives_has_not() -> None:
    with subprocess.Popen(["sleep", "100"]) as process:
        eventually(lambda: system_process(process.pid) is not None)
        seen = system_process(process.pid)
        assert seen is not None
        assert not has_ended(seen, 0.01)
        process.kill()
        assert has_ended(seen, 20.0)
