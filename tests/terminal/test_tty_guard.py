"""Whatever happens to the program, its status is told and the terminal is as it was."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.parts.pty_screen import on_screen

_PROGRAM = """
import os, signal, sys, termios, tty
from holdfast.terminal import guarded

def work():
    tty.setraw(0)
    print("working", flush=True)
    {work}

print("left with", guarded(work), flush=True)
"""


@pytest.mark.parametrize(
    ("work", "status"),
    [
        ("return 3", 3),
        ("sys.exit(4)", 4),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os.abort()", 128 + signal.SIGABRT),
        ("os.kill(os.getppid(), signal.SIGTERM); signal.pause()", 128 + signal.SIGTERM),
        ("raise RuntimeError('x')", 1),
    ],
)
def test_the_status_is_told_as_a_shell_would(tmp_path: Path, work: str, status: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM.format(work=work))
    with on_screen([sys.executable, str(program)], cwd=tmp_path, env=dict(os.environ)) as screen:
        screen.sees(f"left with {status}")

        assert screen.ended() == 0
        assert (b"\x1b[?25h" in screen.raw) == (status > 128)
