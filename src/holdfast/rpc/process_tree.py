"""Find and kill a process with all that came from it, wherever that has gone.

Linux lists processes in /proc. Elsewhere `ps` does, which knows neither environments nor starting
times: there, a descendant that left its group and lost its parent is not found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Self

import anyio

MARK = "HOLDFAST_TREE"

_LOOK_AGAIN_FIRST, _LOOK_AGAIN_LONGEST = 0.001, 0.05
_FREEZES_MAX = 32


@dataclass(frozen=True, slots=True)
class Process:
    """One process as the system lists it; `started` tells it from a later one of the same id."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    is_dead: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """A process that leads a session of its own, with all that descend from it.

    Descendants are known by their parents; those whose parents died, by the session; and those
    that left the session too, by a mark that the root was given in its environment. Valid until
    the root is waited for: after that its number may be given to a stranger.
    """

    root: int
    started: int
    mark: str

    @classmethod
    def of(cls, root: int, mark: str) -> Self:
        """The tree of a process that was just started with this mark in its environment."""
        process = _process(root) if sys.platform == "linux" else None
        return cls(root, started=process.started if process else 0, mark=mark)

    def members(self) -> list[Process]:
        """All that live, the root included, oldest first: parents before their children."""
        recent = [process for process in _processes() if process.started >= self.started]
        found = {process for process in recent if self._belongs(process)}
        pids = {process.pid for process in found}
        while more := {p for p in recent if p.parent in pids and p.pid not in pids}:
            found |= more
            pids |= {process.pid for process in more}
        living = [process for process in found if not process.is_dead]
        return sorted(living, key=lambda process: (process.started, process.pid))

    def terminate(self) -> None:
        """Ask the root and those that stayed in its group to end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.root, signal.SIGTERM)

    async def kill(self, *, patience: float) -> None:
        """Kill every member, and look again until none is left or patience is at its end.

        They are frozen first, so that nobody forks away between being listed and being killed,
        and nobody restarts or avenges another.
        """
        wait = _LOOK_AGAIN_FIRST
        with anyio.move_on_after(patience):
            while members := self._freeze():
                for process in members:
                    _signal(process, signal.SIGKILL)
                await anyio.sleep(wait)
                wait = min(2 * wait, _LOOK_AGAIN_LONGEST)

    def _freeze(self) -> list[Process]:
        frozen: set[int] = set()
        members = self.members()
        for _ in range(_FREEZES_MAX):
            new = [process for process in members if process.pid not in frozen]
            if not new:
                break
            for process in new:
                _signal(process, signal.SIGSTOP)
                frozen.add(process.pid)
            members = self.members()
        return members

    def _belongs(self, process: Process) -> bool:
        return self.root in (process.pid, process.session, process.group) or (
            not process.is_dead and self.mark.encode() in _environment(process.pid)
        )


def marked(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """The same environment with a mark that all descendants inherit; marks of others stay."""
    return {**environment, MARK: f"{environment.get(MARK, '')}:{mark}".removeprefix(":")}


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal this very process, and nobody who was given its number since."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform != "linux":
            os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            now = _process(process.pid)
            if now is not None and now.started == process.started:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


if sys.platform == "linux":

    def _processes() -> Iterator[Process]:
        for name in os.listdir("/proc"):
            if name.isdecimal() and (process := _process(int(name))):
                yield process

    def _process(pid: int) -> Process | None:
        # The name of the program stands in parentheses and may contain anything, also these.
        _, _, fields = _read(f"/proc/{pid}/stat").rpartition(b") ")
        if not fields:
            return None
        state, parent, group, session, *more = fields.split()
        return Process(
            pid, int(parent), int(group), int(session), int(more[15]), is_dead=state in b"ZX"
        )

    def _environment(pid: int) -> bytes:
        return _read(f"/proc/{pid}/environ")

    def _read(path: str) -> bytes:
        """What a file of /proc says; nothing once the process is gone or is not ours to see."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return b""
        try:
            return b"".join(iter(partial(os.read, fd, 2**16), b""))
        except ProcessLookupError:
            return b""
        finally:
            os.close(fd)

else:

    def _processes() -> Iterator[Process]:
        command = ["/bin/ps", "-axo", "pid=,ppid=,pgid=,state="]
        for line in subprocess.run(command, capture_output=True, check=True).stdout.splitlines():
            pid, parent, group, state = line.split()
            yield Process(
                int(pid), int(parent), int(group), int(group), 0, is_dead=state.startswith(b"Z")
            )

    def _environment(pid: int) -> bytes:  # noqa: ARG001  # `ps` cannot say
        return b""
