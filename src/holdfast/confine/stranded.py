"""End what bubblewrap leaves behind if it is killed in the very moment of its start.

The first process of a sandbox waits for the one that made it, and asks to die with that one only
afterwards. If the maker is killed in between, the first one waits for ever, and with it lives the
sign of life of a sandbox that has never begun.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from holdfast.world import SystemProcess, signal_exactly, system_processes


def end_stranded(sign: Path) -> int:
    """Kill the first process of a sandbox whose maker is gone; say how many it were."""
    return sum(
        signal_exactly(process, signal.SIGKILL)
        for process in system_processes()
        if not process.is_dead and _is_stranded(process) and _has_open(process.pid, sign)
    )


def _is_stranded(process: SystemProcess) -> bool:
    """Whether it is bubblewrap, the first of a namespace, and not the child of bubblewrap."""
    program = _program(process.pid)
    if os.path.basename(program) != "bwrap" or program == _program(process.parent):
        return False
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text("ascii").splitlines()
    except OSError:
        return False
    numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
    return len(numbers) > 1 and numbers[-1] == "1"


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _has_open(pid: int, path: Path) -> bool:
    wanted = os.path.realpath(path)
    try:
        names = os.listdir(f"/proc/{pid}/fd")
        return any(os.readlink(f"/proc/{pid}/fd/{name}") == wanted for name in names)
    except OSError:
        return False
