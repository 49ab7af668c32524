"""The simulation itself: time jumps, one seed gives one order, and a deadlock is explained."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.simulation.clock import Deadlock, Livelock
from tests.simulation.harness import Trial, simulate

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


async def crowd(trial: Trial) -> None:
    """Thirty tasks that sleep, race for one lock and are cancelled half way."""
    lock = anyio.Lock()

    async def member(number: int) -> None:
        for step in range(5):
            await anyio.sleep(trial.chance.choice([0.0, 1.0, 60.0]))
            async with lock:
                trial.note(number, step)
                await anyio.sleep(0.0)

    with anyio.move_on_after(150.0):
        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(member, number)
    trial.note("over")


async def stuck(trial: Trial) -> None:
    async def patient() -> None:
        await anyio.Event().wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(patient, name="the patient one")


async def restless(trial: Trial) -> None:
    while True:
        await anyio.lowlevel.checkpoint()


async def unlucky(trial: Trial) -> None:
    await anyio.sleep(1.0)
    assert trial.seed != 3, "three is unlucky"


def test_a_day_passes_at_once() -> None:
    async def wait_a_day(trial: Trial) -> None:
        await anyio.sleep(86_400.0)
        assert anyio.current_time() == 86_400.0

    began = time.monotonic()
    simulate(wait_a_day, 1)

    assert time.monotonic() - began < 10.0


def test_one_seed_gives_one_order_and_another_seed_another() -> None:
    assert simulate(crowd, 1) == simulate(crowd, 1)
    assert len({simulate(crowd, seed) for seed in range(20)}) == 20


def test_the_order_is_the_same_in_every_process() -> None:
    code = (
        "from tests.simulation.harness import simulate\n"
        "from tests.simulation.test_harness import crowd\n"
        "from tests.simulation.test_rpc import two_peers\n"
        "print([simulate(scenario, seed) for scenario in (crowd, two_peers) for seed in range(5)])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2", "3")
    }

    assert len(told) == 1


def test_a_deadlock_names_those_who_wait() -> None:
    with pytest.raises(
        Deadlock, match=r"the patient one: .*patient \(test_harness.py:\d+\) → wait"
    ):
        simulate(stuck, 1)


def test_a_livelock_names_those_who_run() -> None:
    with pytest.raises(Livelock, match=r"time stands still; running:\n.*restless"):
        simulate(restless, 1)


def test_a_failure_says_how_to_see_it_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        "from tests.simulation.test_harness import unlucky\ndef test_luck(sweep): sweep(unlucky)"
    )

    def status(*args: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "tests.plugins.seeds", *args)

    assert status("--seeds", "3").ret == pytest.ExitCode.OK
    status("--seeds", "4").stdout.fnmatch_lines(
        ["*three is unlucky*", "*replay: pytest 'test_*.py::test_luck' --seed 3"]
    )
    assert status("--seed", "4").ret == pytest.ExitCode.OK
    assert status("--seed", "3").ret == pytest.ExitCode.TESTS_FAILED


def test_threads_are_refused() -> None:
    async def start_a_thread(trial: Trial) -> None:
        await asyncio.to_thread(time.monotonic)

    with pytest.raises(RuntimeError, match="no threads"):
        simulate(start_a_thread, 1)
