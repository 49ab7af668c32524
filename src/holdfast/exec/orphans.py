"""Find processes anywhere on the machine by the mark of their keeper, and end them.

The mark is in the environment, which all descendants inherit, and says whose process it is and
which keeper held it. Only Linux shows the environments of others; elsewhere nobody is found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

from holdfast.exec.keeper.protocol import MARK, KeeperName, read_start

_ROUNDS_MAX = 32
_MARK = MARK.encode() + b"="


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A living process that carries a mark; `started` tells it from a later one of its number."""

    pid: int
    started: int
    key: str
    keeper: KeeperName
    command: str


def orphans() -> list[Marked]:
    """Every marked process whose keeper is gone, as far as we may look at it.

    Processes of keepers in other process namespaces are not judged: we cannot see those keepers.
    """
    here = KeeperName.of(os.getpid())
    return [
        process
        for process in _marked()
        if process.keeper.namespace == here.namespace
        and read_start(process.keeper.pid) != process.keeper.started
    ]


def kill(found: Collection[Marked]) -> int:
    """Kill exactly these processes, and nobody who was given one of their numbers since."""
    return sum(_killed(process) for process in found)


def kill_held(keeper: KeeperName) -> int:
    """Kill all that this keeper held, with their descendants, until nobody is left to be found."""
    count = 0
    for _ in range(_ROUNDS_MAX):  # somebody may fork while we look
        killed = kill([process for process in _marked() if process.keeper == keeper])
        if not killed:
            break
        count += killed
    return count


def _marked() -> Iterator[Marked]:
    with suppress(FileNotFoundError):
        for name in os.listdir("/proc"):
            if name.isdecimal() and (found := _look(int(name))) is not None:
                yield found


def _look(pid: int) -> Marked | None:
    mark = next((item for item in _read(pid, "environ") if item.startswith(_MARK)), b"")
    key, _, keeper = os.fsdecode(mark.removeprefix(_MARK)).rpartition("@")
    started, named = read_start(pid), KeeperName.parse(keeper)
    if not key or started is None or named is None:
        return None
    command = os.fsdecode(b" ".join(_read(pid, "cmdline"))).strip()
    return Marked(pid=pid, started=started, key=key, keeper=named, command=command)


def _read(pid: int, name: str) -> list[bytes]:
    """What a file of /proc lists; nothing once the process is dead or is not ours to see."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def _killed(process: Marked) -> bool:
    try:
        handle = os.pidfd_open(process.pid)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        if read_start(process.pid) != process.started:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(handle)
    return True
