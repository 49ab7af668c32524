"""Look at the processes of this machine, and signal exactly those that were seen.

Linux lists processes in /proc. Elsewhere `ps` does, which knows neither environments nor starting
times.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

_READ_BYTES = 2**14
_LISTS_MAX = 64  # of a machine that never stops starting processes


@dataclass(frozen=True, slots=True)
class SystemProcess:
    """One process as the system lists it; `started` tells it from a later one of the same id."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    is_dead: bool


def signal_exactly(process: SystemProcess, number: int) -> bool:
    """Signal this very process, nobody who was given its number since; say whether it was there."""
    try:
        if sys.platform != "linux":
            os.kill(process.pid, number)
            return True
        handle = os.pidfd_open(process.pid)
        try:
            now = system_process(process.pid)
            if now is None or now.is_dead or now.started != process.started:
                return False
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if sys.platform == "linux":

    def system_processes() -> Iterator[SystemProcess]:
        """All that can be seen, the dead that nobody has waited for included; newest first.

        What starts meanwhile is listed, too: else a process that forks and ends, again and again,
        would never be seen.
        """
        known: set[int] = set()
        for _ in range(_LISTS_MAX):
            listed = {int(name) for name in os.listdir("/proc") if name.isdecimal()}
            if listed <= known:
                return
            for pid in sorted(listed - known, reverse=True):
                if process := system_process(pid):
                    yield process
            known |= listed

    def system_process(pid: int) -> SystemProcess | None:
        """The process of this number; None if it is gone or is not ours to see."""
        # The name of the program stands in parentheses and may contain anything, also these.
        _, _, fields = _read(pid, "stat").rpartition(b") ")
        if not fields:
            return None
        state, parent, group, session, *more = fields.split()
        return SystemProcess(
            pid, int(parent), int(group), int(session), int(more[15]), is_dead=state in b"ZX"
        )

    def environment_of(pid: int) -> list[bytes]:
        """The variables that a process was started with; none if it is not ours to see."""
        return _read(pid, "environ").split(b"\0")

    def limit_number(pid: int) -> int | None:
        """The hard limit RLIMIT_RTTIME of a process; None if it has none, or is gone."""
        _, _, line = _read(pid, "limits").partition(b"Max realtime timeout")
        words = line.split(maxsplit=2)
        return int(words[1]) if len(words) > 2 and words[1].isdigit() else None

    def command_of(pid: int) -> str:
        """The words that a process was started with."""
        return os.fsdecode(_read(pid, "cmdline").replace(b"\0", b" ")).strip()

    def _read(pid: int, name: str) -> bytes:
        """What a file of /proc says; nothing once the process is gone or is not ours to see."""
        try:
            fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return b""
        try:
            first = os.read(fd, _READ_BYTES)
            if len(first) < _READ_BYTES:  # these files are written whole, however short the read
                return first
            return b"".join((first, *iter(partial(os.read, fd, _READ_BYTES), b"")))
        except ProcessLookupError:
            return b""
        finally:
            os.close(fd)

else:

    def system_processes() -> Iterator[SystemProcess]:
        """All that can be seen, the dead that nobody has waited for included."""
        command = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,state="]
        for line in subprocess.run(command, capture_output=True, check=True).stdout.splitlines():
            pid, parent, group, state = line.split()
            yield SystemProcess(
                int(pid), int(parent), int(group), int(group), 0, is_dead=state.startswith(b"Z")
            )

    def system_process(pid: int) -> SystemProcess | None:
        """The process of this number; None if it is gone."""
        return next((each for each in system_processes() if each.pid == pid), None)

    def environment_of(pid: int) -> list[bytes]:  # noqa: ARG001  # `ps` cannot say
        """The variables that a process was started with; none here."""
        return []

    def limit_number(pid: int) -> int | None:  # noqa: ARG001  # `ps` cannot say
        """The hard limit RLIMIT_RTTIME of a process; none here."""
        return None

    def command_of(pid: int) -> str:  # noqa: ARG001  # whoever asks has found it by its environment
        """The words that a process was started with; none here."""
        return ""
