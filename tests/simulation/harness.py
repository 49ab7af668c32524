"""Run one scenario under one seed, in virtual time and in one reproducible order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable

import anyio

from tests.simulation.clock import VirtualTimeLoop


class Trial:
    """What a scenario is given: chance that follows from the seed, and a place for notes."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"scenario {seed}")
        self._notes = hashlib.sha256()

    def note(self, *what: object) -> None:
        """Remember that something happened now: the same seed must give the same notes."""
        self._notes.update(repr((anyio.current_time(), *what)).encode())

    def fingerprint(self, loop: VirtualTimeLoop) -> str:
        """One word for all that happened, the order of tasks included."""
        self._notes.update(f"{loop.now!r} {loop.trace}".encode())
        return self._notes.hexdigest()[:16]


Scenario = Callable[[Trial], Awaitable[None]]


def simulate(scenario: Scenario, seed: int) -> str:
    """Run a scenario from one seed; return its fingerprint, which the seed alone decides."""
    trial = Trial(seed)
    loops: list[VirtualTimeLoop] = []

    def new_loop() -> VirtualTimeLoop:
        loops.append(VirtualTimeLoop(seed))
        return loops[-1]

    anyio.run(scenario, trial, backend="asyncio", backend_options={"loop_factory": new_loop})
    return trial.fingerprint(loops[-1])
