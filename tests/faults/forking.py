"""Children that are forked off a server with the modules they need, by several threads at once."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["tests.faults.keeper", "tests.faults.stand_in", "tests.faults.workbench_worker"]
)

# Starting any child looks whether any other has ended, and only the first to look is told how.
_REAPING = threading.Lock()


def start(child: ForkServerProcess) -> None:
    """Start a child while nobody else asks how one has ended."""
    with _REAPING:
        child.start()


def ended(child: ForkServerProcess, *, patience: float = 60.0) -> int | None:
    """How a child has ended; None if it has not within its time."""
    wait([child.sentinel], timeout=patience)
    with _REAPING:
        return child.exitcode
