"""Small programs end in time, and leave nothing behind."""

from __future__ import annotations

import fcntl
import sys
from pathlib import Path

import pytest

from holdfast.app.doctor.children import ask, try_program
from holdfast.app.doctor.confinement import Ran, Reached
from holdfast.app.doctor.model import Refused
from holdfast.app.doctor.storage import Space

pytestmark = pytest.mark.anyio


async def test_a_probe_answers_with_facts(tmp_path: Path) -> None:
    facts = await ask("storage.space", str(tmp_path), Space)

    assert isinstance(facts, Space)
    assert facts.bytes_free > 0


async def test_a_probe_answers_with_what_the_system_said() -> None:
    refused = await ask("network.unix", "/proc", Reached)

    assert refused == Refused("No such file or directory", "ENOENT", is_nowhere=True)


async def test_a_probe_that_says_nothing_of_use_is_no_riddle() -> None:
    refused = await ask("storage.nothing", "/", Space)

    assert isinstance(refused, Refused)
    assert refused.reason.startswith("the probe ended with status 1: ValueError")


async def test_a_program_is_run_and_its_first_line_kept() -> None:
    script = "print('first'); print('second'); raise SystemExit(3)"

    assert await try_program(sys.executable, "-c", script) == Ran(3, "first")


async def test_a_program_that_is_not_there_is_not_found() -> None:
    assert await try_program("holdfast-nonesuch") == Refused("not found", "ENOENT")


async def test_a_program_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o700)

    assert await try_program(str(script)) == Refused("No such file or directory")


async def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    held = tmp_path / "held"
    script = (
        "import fcntl, signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"held = open({str(held)!r}, 'w')\n"
        "fcntl.flock(held, fcntl.LOCK_EX)\n"
        "subprocess.Popen(['sleep', '600'], pass_fds=[held.fileno()])\n"
        "signal.pause()\n"
    )

    assert await try_program(sys.executable, "-c", script) == Refused("no answer within 2.5 s")
    assert _nobody_holds(held)


def _nobody_holds(path: Path) -> bool:
    """Whether the lock becomes free: the kernel frees it when the last holder has died."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    return True
