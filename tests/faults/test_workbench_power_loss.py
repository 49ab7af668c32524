"""Cut the power of a real file system at every call with which a workbench changes anything."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace

import pytest

from tests.faults.mounts import missing_for_mounts
from tests.faults.workbench_disks import DiskGround, on_disk
from tests.faults.workbench_ground import Ground, Tally
from tests.faults.workbench_scenes import SCENES
from tests.faults.workbench_tracing import MISSING, NO_HARM, Harm, killed_at

MISSING_HERE = MISSING or missing_for_mounts()
pytestmark = [
    pytest.mark.skipif(MISSING_HERE is not None, reason=f"no power can be cut: {MISSING_HERE}"),
    pytest.mark.promise("W1", "W3", "W4"),
]

SEED, SAMPLE = 7, 4
SYSTEMS = [
    "ext4",
    pytest.param(
        "xfs",
        marks=pytest.mark.skipif(shutil.which("mkfs.xfs") is None, reason="mkfs.xfs is missing"),
    ),
]


def lose_power(ground: DiskGround, chosen: list[Harm]) -> Tally:
    """Cut the power at each of these calls, and judge."""
    tally = Tally()
    for harm in chosen:
        ground.run(harm)
        ground.cut()
        tally.cases += 1
        if wrong := ground.judge(ground.said()):
            tally.wrong[str(harm)] = wrong
    return tally


def moments(ground: Ground) -> list[Harm]:
    """Every call with which it changes something, and when it has said that all is done."""
    return [NO_HARM, *(killed_at(call) for call in ground.calls if call.changes)]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("scene", ["publish", "publish a layer"])
def test_power_loss_costs_nothing_that_was_acknowledged(scene: str, system: str) -> None:
    with on_disk(scene, system) as ground:
        done, *others = moments(ground)
        chosen = [done, *random.Random(SEED).sample(others, SAMPLE)]

        assert lose_power(ground, chosen).wrong == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("scene", SCENES)
def test_power_loss_at_any_call_costs_nothing_that_was_acknowledged(
    scene: str, system: str
) -> None:
    with on_disk(scene, system) as ground:
        assert lose_power(ground, moments(ground)).wrong == {}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_worker_that_does_not_sync_what_it_stages_is_caught(system: str) -> None:
    with on_disk("transaction", system) as ground:
        planted = replace(NO_HARM, habits=("unsynced_files",))

        assert len(lose_power(ground, [planted]).wrong) == 1
