"""End everything that an agent has started, also what has outlived it.

The mark is in the environment, which all descendants inherit. Only Linux shows the environments
of others; elsewhere an agent's process group is all that ends with it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Final

from holdfast.world import SystemProcess, environment_of, signal_exactly, system_processes

MARK: Final = "HOLDFAST_AGENT"  # in the environment of an agent: of which session, and which one
_ROUNDS_MAX = 32


def sweep(mark: str) -> int:
    """Kill every process whose mark is this or begins with it and a slash; say how many."""
    killed = 0
    for _ in range(_ROUNDS_MAX):  # somebody may fork while we look
        count = sum(signal_exactly(each, signal.SIGKILL) for each in _marked(mark.encode()))
        if not count:
            break
        killed += count
    return killed


def _marked(mark: bytes) -> Iterator[SystemProcess]:
    whole = MARK.encode() + b"=" + mark
    for process in system_processes():
        if not process.is_dead and any(
            item == whole or item.startswith(whole + b"/") for item in environment_of(process.pid)
        ):
            yield process
