"""Run a simulation under many seeds, and say how to run the one that failed again."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.simulation.harness import Scenario, simulate


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, metavar="N", help="simulate under this seed only")
    group.addoption(
        "--seeds", type=int, default=30, metavar="COUNT", help="how many seeds to simulate under"
    )


class Sweep:
    """Runs a scenario under every seed that was asked for."""

    def __init__(self, config: pytest.Config, nodeid: str) -> None:
        self._only: int | None = config.getoption("seed")
        self._count: int = config.getoption("seeds")
        self._nodeid = nodeid

    def __call__(self, scenario: Scenario, seeds: Iterable[int] | None = None) -> None:
        if self._only is not None:
            seeds = [self._only]
        for seed in range(self._count) if seeds is None else seeds:
            try:
                simulate(scenario, seed)
            except BaseException as error:
                error.add_note(f"replay: pytest '{self._nodeid}' --seed {seed}")
                raise


@pytest.fixture
def sweep(request: pytest.FixtureRequest) -> Sweep:
    """Simulate under `--seeds` many seeds, or under `--seed` alone."""
    return Sweep(request.config, request.node.nodeid)
