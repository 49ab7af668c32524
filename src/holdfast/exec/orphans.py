"""Find processes anywhere on the machine by the mark of their keeper, and end them.

The mark is in the environment, which all descendants inherit, and says whose process it is and
which keeper held it. Only Linux shows the environments of others; elsewhere nobody is found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from holdfast.exec.keeper.protocol import MARK, KeeperName
from holdfast.world import (
    SystemProcess,
    command_of,
    environment_of,
    signal_exactly,
    system_process,
    system_processes,
)

_ROUNDS_MAX = 32
_MARK = MARK.encode() + b"="


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A living process that carries a mark: whose it is, and which keeper held it."""

    process: SystemProcess
    key: str
    keeper: KeeperName
    command: str


def orphans() -> list[Marked]:
    """Every marked process whose keeper is gone, as far as we may look at it.

    Processes of keepers in other process namespaces are not judged: we cannot see those keepers.
    """
    found = list(_marked())
    here = namespace_of(os.getpid()) if found else None
    return [each for each in found if each.keeper.namespace == here and is_gone(each.keeper)]


def kill(found: Collection[Marked]) -> int:
    """Kill exactly these processes, and nobody who was given one of their numbers since."""
    return sum(signal_exactly(each.process, signal.SIGKILL) for each in found)


def kill_held(keeper: KeeperName) -> list[Marked]:
    """Kill all that this keeper held, with their descendants, until nobody is left to be found."""
    killed: dict[SystemProcess, Marked] = {}
    for _ in range(_ROUNDS_MAX):  # somebody may fork while we look
        left = [each for each in _marked() if each.keeper == keeper]
        if not kill(left):
            break
        killed |= {each.process: each for each in left}
    return list(killed.values())


def name_of(pid: int) -> KeeperName | None:
    """The name of a keeper that lives; None if it does not."""
    process, namespace = system_process(pid), namespace_of(pid)
    if process is None or process.is_dead or namespace is None:
        return None
    return KeeperName(pid, process.started, namespace)


def is_gone(keeper: KeeperName) -> bool:
    """Whether a keeper of our own process namespace no longer lives."""
    process = system_process(keeper.pid)
    return process is None or process.is_dead or process.started != keeper.started


def namespace_of(pid: int) -> int | None:
    """Which process namespace a process is in; None if it is gone or is not ours to see."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _marked() -> Iterator[Marked]:
    for process in system_processes():
        if not process.is_dead and (found := _look(process)) is not None:
            yield found


def _look(process: SystemProcess) -> Marked | None:
    variables = environment_of(process.pid)
    mark = next((item for item in variables if item.startswith(_MARK)), b"")
    key, _, keeper = os.fsdecode(mark.removeprefix(_MARK)).rpartition("@")
    named = KeeperName.parse(keeper)
    if not key or named is None:
        return None
    return Marked(process=process, key=key, keeper=named, command=command_of(process.pid))
