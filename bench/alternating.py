"""Measure in turn: each in a process of its own, a round whenever it is told to.

A machine that others use too is slow now and quick then. Who is measured in turn, round after
round, is slow and quick together, and medians can be compared.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
Figures = dict[str, float]
Order = dict[str, Any]  # Any: what a worker is told is between it and its benchmark


def on_one_core() -> None:
    """Let this process and all that it starts share one core, where the system can do that.

    What it takes to wake someone on another core varies more than what is measured.
    """
    if sys.platform == "linux":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def have_memory(size: int, directory: Path | None = None) -> None:
    """Have so much memory at hand for files: what a host must give first costs several times.

    A virtual machine gives memory back that it does not use, and whoever comes next would pay.
    """
    block = bytes(2**20)
    with tempfile.TemporaryFile(buffering=0, dir=directory) as file:
        for _ in range(0, size, len(block)):
            file.write(block)


class Worker:
    """A process that measures when it is told to, and otherwise waits."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
        )

    def measured(self, order: Order) -> Figures:
        """Have it do a round, and return what it measured."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: Figures = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._process.wait():
            raise SystemExit(f"a worker broke: {self._process.args}")


@contextmanager
def working(commands: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Worker]]:
    """Workers by name, while this block lasts."""
    workers = {name: Worker(command) for name, command in commands.items()}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def in_turn(workers: Mapping[str, Worker], order: Order, rounds: int) -> dict[str, Figures]:
    """The median of each figure of each worker, after so many rounds in turn."""
    return _medians([_round(workers, order) for _ in range(rounds)])


def afresh(commands: Mapping[str, Sequence[str]], order: Order, rounds: int) -> dict[str, Figures]:
    """The same, with new workers in each round, so that nobody inherits memory."""
    found: list[dict[str, Figures]] = []
    for _ in range(rounds):
        with working(commands) as workers:
            found.append(_round(workers, order))
    return _medians(found)


def _round(workers: Mapping[str, Worker], order: Order) -> dict[str, Figures]:
    return {name: worker.measured(order) for name, worker in workers.items()}


def _medians(rounds: Sequence[Mapping[str, Figures]]) -> dict[str, Figures]:
    return {
        name: {figure: median(found[name][figure] for found in rounds) for figure in figures}
        for name, figures in rounds[0].items()
    }


def orders() -> Iterator[Order]:
    """What a worker is told to do, one after the other."""
    for line in sys.stdin:
        yield json.loads(line)


def tell(figures: Figures) -> None:
    """Say what was measured."""
    print(json.dumps(figures), flush=True)


class Watch:
    """What an act costs this process: processor time, time, and the most memory it ever had."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def figures(self, events: int) -> Figures:
        """What so many events cost since the watch began."""
        cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {"per_cpu_second": events / cpu, "per_second": events / wall, "peak_mib": peak}


def trip_figures(trips: list[float]) -> Figures:
    """What round trips took, in microseconds."""
    trips.sort()
    return {"p50": trips[len(trips) // 2] * 1e6, "p99": trips[len(trips) * 99 // 100] * 1e6}


async def trips(ask: Callable[[], Awaitable[object]], count: int) -> Figures:
    """Ask so many times, one after the other."""
    taken: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - began)
    return trip_figures(taken)
