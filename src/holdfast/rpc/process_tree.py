"""Find and kill a process with all that came from it, wherever that has gone.

Where the system shows neither environments nor starting times, a descendant that left its group
and lost its parent is not found.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import anyio

from holdfast.world import (
    SystemProcess,
    environment_of,
    signal_exactly,
    system_process,
    system_processes,
)

MARK = "HOLDFAST_TREE"

_LOOK_AGAIN_FIRST, _LOOK_AGAIN_LONGEST = 0.001, 0.05
_FREEZES_MAX = 32


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
        process = system_process(root) if sys.platform == "linux" else None
        return cls(root, started=process.started if process else 0, mark=mark)

    def members(self) -> list[SystemProcess]:
        """All that live, the root included, oldest first: parents before their children."""
        recent = [process for process in system_processes() if process.started >= self.started]
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
                    signal_exactly(process, signal.SIGKILL)
                await anyio.sleep(wait)
                wait = min(2 * wait, _LOOK_AGAIN_LONGEST)

    def _freeze(self) -> list[SystemProcess]:
        frozen: set[int] = set()
        members = self.members()
        for _ in range(_FREEZES_MAX):
            new = [process for process in members if process.pid not in frozen]
            if not new:
                break
            for process in new:
                signal_exactly(process, signal.SIGSTOP)
                frozen.add(process.pid)
            members = self.members()
        return members

    def _belongs(self, process: SystemProcess) -> bool:
        return self.root in (process.pid, process.session, process.group) or (
            not process.is_dead and self._is_marked(process)
        )

    def _is_marked(self, process: SystemProcess) -> bool:
        mark = self.mark.encode()
        return any(mark in variable for variable in environment_of(process.pid))


def marked(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """The same environment with a mark that all descendants inherit; marks of others stay."""
    return {**environment, MARK: f"{environment.get(MARK, '')}:{mark}".removeprefix(":")}
