"""Look at the processes of this machine, and signal exactly those that were seen.

Linux lists processes in /proc. Elsewhere `ps` does, which knows neither environments nor starting
times.

Find and end everything that a marked process has started, also what called setsid.

A mark is a variable in the environment of a process, which its descendants inherit. Four rules
decide which processes belong to a mark; each closes a gap of the others:

    environment   carries the mark             survives setsid, double forks, the parent's death
    parent        descends from a member       survives an exec with another environment
    session       in the session of a member   survives both, unless the process called setsid
    limit         has a member's limit number  survives all of it

The limit number is the hard limit RLIMIT_RTTIME. It means nothing but to real-time programs, is
inherited like the environment, is shown in /proc/PID/limits, and can be lowered by anybody and
raised by root alone. The keeper gives each process that it starts a number of its own, each lower
than the one before (`exec.keeper.child`), which is too high to limit anything. A number counts only
if the parents of the members do not have it, too.

Services of ours (exec-server, keeper, holders of places) belong to the home and not to the process
that happened to need them first. They say so in their environment, and are left alone with all that
they have started. None of this keeps out a process that wants to hide: that is what sandboxes are
for.

Ending: every member gets SIGSTOP until a scan finds no new one, so that none forks between the
scan and its end, then SIGKILL; and again until a scan finds no process.

Only Linux shows the environments of others; elsewhere no process is found.

Decision: docs/decisions/0174-limit-numbers-mark-processes.md
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

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
    """Signal this process, never another one that reuses its pid; return whether it existed."""
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
        """All visible processes, zombies included; newest first.

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
        # The program name is in parentheses and may itself contain parentheses and spaces.
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
        """All visible processes, zombies included."""
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

    def command_of(pid: int) -> str:  # noqa: ARG001  # the caller found it by its environment
        """The words that a process was started with; none here."""
        return ""


MARK: Final = "HOLDFAST_AGENT"  # in the environment of an agent: of which session, and which one
SERVICE: Final = "HOLDFAST_SERVICE"  # in the environment of a service: which one
_SERVICES: Final = (f"{SERVICE}=".encode(), b"HOLDFAST_PLACE=")
END_LONGEST: Final = 10.0  # seconds until what does not die (uninterruptible sleep) is given up
_SCANS_MAX: Final = 64

IsMember = Callable[[SystemProcess, Sequence[bytes]], bool]
"""Whether a process belongs by itself, as its environment (`NAME=value` entries) or it says."""

_Key = tuple[int, int]  # pid and starting time: one process, for as long as the machine runs


class SweepResult(NamedTuple):
    """How many processes were ended, and which could not be: not ours to signal, or stuck."""

    killed: int
    left: tuple[SystemProcess, ...] = ()


def is_service(environment: Iterable[bytes]) -> bool:
    """Whether a process with this environment is a service of ours."""
    return any(entry.startswith(_SERVICES) for entry in environment)


def sweep(mark: str) -> SweepResult:
    """End every process of this agent mark, and of all marks below it (`mark/…`); blocks."""
    return end_members(_has_agent_mark(mark))


def agents(mark: str) -> list[SystemProcess]:
    """All living processes of this agent mark, and of all marks below it."""
    return members(_has_agent_mark(mark))


def members(
    is_member: IsMember,
    met: Callable[[SystemProcess], object] = lambda _: None,
    *,
    numbers: Collection[int] = (),
) -> list[SystemProcess]:
    """All living processes that belong by the four rules, never this process itself.

    `met` is called at once with each that belongs by itself: it may be gone a moment later.
    `numbers` are limit numbers that are known to belong.
    """
    living: dict[int, SystemProcess] = {}
    found: set[int] = set()
    for each in system_processes():
        if each.is_dead or each.pid == os.getpid():
            continue
        environment = environment_of(each.pid)
        if is_service(environment):
            continue
        living[each.pid] = each
        if is_member(each, environment):
            met(each)
            found.add(each.pid)
    if not found and not numbers:
        return []
    limits = {pid: number for pid in living if (number := limit_number(pid)) is not None}
    while more := _more(living, found, limits, numbers):
        found |= more
    return [living[pid] for pid in found]


def _more(
    living: Mapping[int, SystemProcess],
    found: Collection[int],
    limits: Mapping[int, int],
    numbers: Collection[int],
) -> set[int]:
    """Who belongs because others do."""
    # A session whose leader lives and is not a member was joined, not made, by a member.
    sessions = {s for pid in found if (s := living[pid].session) in found or s not in living}
    sessions -= {0, os.getsid(0)}  # 0: its leader is outside of our process namespace
    parents = {living[pid].parent for pid in found} - set(found)
    inherited = {limit_number(pid) for pid in (*parents, os.getpid())}
    same = ({limits.get(pid) for pid in found} | set(numbers)) - inherited
    return {
        pid
        for pid, each in living.items()
        if pid not in found
        and (each.parent in found or each.session in sessions or limits.get(pid, 0) in same)
    }


def end_members(is_member: IsMember, *, numbers: Collection[int] = ()) -> SweepResult:
    """End all that belong by the four rules; return once none is left, or what is left is stuck.

    Blocks. What forks meanwhile is ended, too.
    """
    deadline = time.monotonic() + END_LONGEST
    stopped: set[_Key] = set()
    killed: set[_Key] = set()
    found: list[SystemProcess] = []

    def stop(process: SystemProcess) -> None:
        if _key(process) not in stopped:
            stopped.add(_key(process))
            signal_exactly(process, signal.SIGSTOP)

    for _ in range(_SCANS_MAX):
        before = len(stopped)
        found = members(is_member, stop, numbers=numbers)
        if not found or time.monotonic() >= deadline:
            break
        for each in found:
            stop(each)
        if len(stopped) > before:
            continue
        for each in found:
            if signal_exactly(each, signal.SIGKILL):
                killed.add(_key(each))
        _wait_dead([each for each in found if _key(each) in killed], deadline)
        if not any(_key(each) in killed for each in found):
            break  # none of them is ours to signal
    return SweepResult(len(killed), tuple(found))


def _wait_dead(processes: Sequence[SystemProcess], deadline: float) -> None:
    for each in processes:
        try:
            handle = os.pidfd_open(each.pid)
        except OSError:  # gone, or no descriptor is left: the next scan looks at it
            continue
        try:
            now = system_process(each.pid)
            if now is not None and now.started == each.started:
                ends = select.poll()  # not select(): descriptors may be above FD_SETSIZE
                ends.register(handle, select.POLLIN)
                ends.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(handle)


def _has_agent_mark(mark: str) -> IsMember:
    whole = f"{MARK}={mark}".encode()

    def is_member(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return any(each == whole or each.startswith(whole + b"/") for each in environment)

    return is_member


def _key(process: SystemProcess) -> _Key:
    return process.pid, process.started
