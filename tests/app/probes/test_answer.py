"""How a probe answers, and how it leaves when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.app.probes.running import run_probe

WAITING = """
import signal, sys
from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import scratch

def wait(directory):
    with scratch(directory):
        print("ready", flush=True)
        signal.pause()

answer(wait)
"""


def test_facts_are_one_line_of_json(tmp_path: Path) -> None:
    assert run_probe("storage", "home", tmp_path)["facts"]["exists"] is True


def test_a_system_error_is_an_answer_too() -> None:
    assert run_probe("storage", "syncing", "/proc/self") == {
        "refused": {
            "reason": "No such file or directory",
            "errno": "ENOENT",
            "is_nowhere": True,
        }
    }


def test_a_probe_that_is_told_to_end_cleans_up_first(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAITING, "wait", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as probe:
        assert probe.stdout is not None
        assert probe.stdout.readline() == b"ready\n"
        assert len(os.listdir(tmp_path)) == 1
        probe.send_signal(signal.SIGTERM)

    assert probe.returncode == 143
    assert os.listdir(tmp_path) == []
