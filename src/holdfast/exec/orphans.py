"""Find processes anywhere on the machine by the mark of their keeper, and end them.

The mark is in the environment, which all descendants inherit, and says whose process it is and
which keeper held it; `world.process_marks` says what else belongs to it. What has another
environment is told by its limit number, which ends in the tag of the keeper. Only Linux shows the
environments of others; elsewhere nobody is found.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.exec.keeper.protocol import MARK, TAG_BITS, KeeperName
from holdfast.world import (
    Ended,
    SystemProcess,
    command_of,
    end_members,
    environment_of,
    is_service,
    limit_number,
    signal_exactly,
    system_process,
    system_processes,
)

SESSION_MARK = "HOLDFAST_EXEC_SESSION"  # in the environment of a process: its session's id
_MARK = MARK.encode() + b"="
_SESSION = SESSION_MARK.encode() + b"="


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A living process that carries a mark: whose it is, and which keeper held it."""

    process: SystemProcess
    key: str
    keeper: KeeperName
    command: str
    session: str = ""  # of the server, where that is known


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
    """Kill all that this keeper held, and all that they started, until none is left."""
    found = [each for each in _marked() if each.keeper == keeper]

    def is_held(process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[1] == keeper or _has_tag(process.pid, keeper)

    end_members(is_held)
    return found


def end_started(keys: Collection[str], numbers: Collection[int] = ()) -> Ended:
    """End the processes of these keys, and all that they have started; blocks.

    `numbers` are the limit numbers of these processes, as far as they are known.
    """

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[0] in keys

    return end_members(is_started, numbers=numbers)


def end_session(session: str, numbers: Collection[int] = ()) -> Ended:
    """The same for all processes of one session of a server."""
    mark = _SESSION + session.encode()

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return mark in environment

    return end_members(is_started, numbers=numbers)


class Detached(NamedTuple):
    """A living process that was left running: by which process, of which session."""

    process: SystemProcess
    key: str
    session: str
    command: str


def detached(
    sessions: Collection[str], roots: Collection[int], numbers: Mapping[int, tuple[str, str]]
) -> list[Detached]:
    """What processes of these sessions have started, and has outlived the one that started it.

    `roots` are the processes of the sessions themselves, `numbers` have key and session of each
    limit number. What has a parent of the same key is not listed: it is part of what runs there.
    Nor are services of ours.
    """
    found: dict[int, Detached] = {}
    for process in system_processes():
        if process.is_dead:
            continue
        marked = _look(process)
        if marked is not None and marked.session in sessions:
            key, session = marked.key, marked.session
        elif marked is None and (known := numbers.get(limit_number(process.pid) or 0)):
            key, session = known
        else:
            continue
        found[process.pid] = Detached(process, key, session, command_of(process.pid))
    return [
        each
        for pid, each in sorted(found.items())
        if pid not in roots
        and getattr(found.get(each.process.parent), "key", "") != each.key
        and not is_service(environment_of(pid))
    ]


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


def _has_tag(pid: int, keeper: KeeperName) -> bool:
    limit = limit_number(pid)
    return limit is not None and limit & ~(-1 << TAG_BITS) == keeper.tag


def _marked() -> Iterator[Marked]:
    for process in system_processes():
        if not process.is_dead and (found := _look(process)) is not None:
            yield found


def _look(process: SystemProcess) -> Marked | None:
    environment = environment_of(process.pid)
    key, keeper = _mark_of(environment)
    if not key or keeper is None:
        return None
    marks = (item for item in environment if item.startswith(_SESSION))
    return Marked(
        process=process,
        key=key,
        keeper=keeper,
        command=command_of(process.pid),
        session=os.fsdecode(next(marks, b"").removeprefix(_SESSION)),
    )


def _mark_of(environment: Sequence[bytes]) -> tuple[str, KeeperName | None]:
    """The key and the keeper that a mark names; nothing where there is none."""
    mark = next((item for item in environment if item.startswith(_MARK)), b"")
    key, _, keeper = os.fsdecode(mark.removeprefix(_MARK)).rpartition("@")
    named = KeeperName.parse(keeper)
    return ("", None) if named is None else (key, named)
