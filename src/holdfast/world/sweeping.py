"""End everything that an agent has started, also what has outlived it.

The mark is in the environment, which all descendants inherit. Only Linux shows the environments
of others; elsewhere an agent's process group is all that ends with it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

from holdfast.world.processes import (
    SystemProcess,
    environment_of,
    signal_exactly,
    system_processes,
)

MARK: Final = "HOLDFAST_AGENT"  # in the environment of an agent: of which session, and which one
_ROUNDS_MAX = 32


def sweep(mark: str) -> int:
    """Kill every process whose mark is this or begins with it and a slash; say how many."""
    killed: set[SystemProcess] = set()
    for _ in range(_ROUNDS_MAX):  # somebody may fork while we look
        found = {each for each in _marked(mark.encode()) if each not in killed}
        if not found:
            break
        killed |= {each for each in found if signal_exactly(each, signal.SIGKILL)}
    return len({(each.pid, each.started) for each in killed})


def _marked(mark: bytes) -> Iterator[SystemProcess]:
    whole = MARK.encode() + b"=" + mark
    for process in system_processes():
        if not process.is_dead and any(
            item == whole or item.startswith(whole + b"/") for item in environment_of(process.pid)
        ):
            yield process
