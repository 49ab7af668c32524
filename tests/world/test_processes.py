"""The processes of the machine are seen as they are, and exactly they are signalled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from holdfast.world import (
    command_of,
    environment_of,
    signal_exactly,
    system_process,
    system_processes,
)

SLEEPS = ["/bin/sleep", "60"]


def test_a_process_is_listed_with_its_family() -> None:
    with subprocess.Popen(SLEEPS, start_new_session=True) as process:
        found = next(each for each in system_processes() if each.pid == process.pid)

        assert (found.parent, found.group, found.is_dead) == (os.getpid(), process.pid, False)
        assert system_process(process.pid) == found
        assert signal_exactly(found, signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
        assert (system_process(process.pid), signal_exactly(found, signal.SIGKILL)) == (None, False)


@pytest.mark.skipif(sys.platform != "linux", reason="`ps` shows no starting times")
def test_one_who_was_given_a_number_since_is_left_alone() -> None:
    with subprocess.Popen(SLEEPS) as process:
        found = system_process(process.pid)
        assert found is not None

        assert not signal_exactly(replace(found, started=found.started - 1), signal.SIGKILL)
        assert process.poll() is None
        assert signal_exactly(found, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="`ps` shows no environments")
def test_environment_and_command_are_those_that_it_was_started_with() -> None:
    script = "import os; os.write(1, b'!'); os.read(0, 1)"
    command = [sys.executable, "-I", "-S", "-c", script, "a ) b"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env={"ONE": "1"}, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None and process.stdout.read(1) == b"!"

        assert b"ONE=1" in environment_of(process.pid)
        assert command_of(process.pid) == " ".join(command)
        process.kill()
    assert (environment_of(process.pid), command_of(process.pid)) == ([b""], "")
