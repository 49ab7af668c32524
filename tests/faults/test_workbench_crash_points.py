"""Harm a workbench at every system call with which it changes anything."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.faults.workbench_ground import laid_out, sweep, sweep_twice
from tests.faults.workbench_scenes import SCENES
from tests.faults.workbench_tracing import MISSING, Harm, harms, killed_at

pytestmark = [
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.promise("W1", "W2", "W3", "W4", "W7"),
]

SEED, SAMPLE = 6, 4
TOLD = [name for name in SCENES if not name.startswith("store")]  # the others are part of them


def sampled(every: list[Harm]) -> list[Harm]:
    """Some of all harms, and of the kills as many as of all the rest."""
    chance = random.Random(SEED)
    kills = [harm for harm in every if harm.what.startswith("killed")]
    others = [harm for harm in every if harm not in kills]
    return chance.sample(kills, min(SAMPLE, len(kills))) + chance.sample(others, SAMPLE)


@pytest.mark.parametrize("scene", TOLD)
def test_no_harm_breaks_what_was_promised(scene: str) -> None:
    with laid_out(scene) as ground:
        tally = sweep(ground, sampled(harms(ground.calls)))

        assert tally.wrong == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES)
def test_no_harm_at_all_breaks_what_was_promised(scene: str) -> None:
    with laid_out(scene) as ground:
        tally = sweep(ground, harms(ground.calls))

        assert tally.wrong == {}
        assert len(tally.missed) <= tally.cases // 20


@pytest.mark.parametrize("scene", TOLD)
def test_the_recovery_can_be_killed_too(scene: str) -> None:
    with laid_out(scene) as ground:
        kills = [call for call in ground.calls if call.changes]
        chosen = random.Random(SEED).sample(kills, 2)

        assert sweep_twice(ground, chosen, most=1).wrong == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES)
def test_the_recovery_can_be_killed_anywhere_too(scene: str) -> None:
    with laid_out(scene) as ground:
        tally = sweep_twice(ground, [call for call in ground.calls if call.changes])

        assert tally.wrong == {}
        assert tally.cases > 20


def test_a_worker_that_puts_no_marker_is_caught() -> None:
    with laid_out("transaction") as ground:
        moves = [call for call in ground.calls if call.name == "renameat2"][2:5]
        planted = [replace(killed_at(call), habits=("unmarked",)) for call in moves]

        assert len(sweep(ground, planted).wrong) == len(planted)
