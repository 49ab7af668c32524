"""A disk on which there is really no room, for a workbench that has something to do."""

from __future__ import annotations

import pytest

from tests.faults.mounts import missing_for_mounts
from tests.faults.workbench_disks import DiskGround, on_disk
from tests.faults.workbench_ground import Tally
from tests.faults.workbench_scenes import SCENES
from tests.faults.workbench_tracing import MISSING, NO_HARM

MISSING_HERE = MISSING or missing_for_mounts()
pytestmark = [
    pytest.mark.skipif(MISSING_HERE is not None, reason=f"no disk can be filled: {MISSING_HERE}"),
    pytest.mark.promise("W1", "W7"),
]

KIB = 1024
STEPS = range(0, 200 * KIB, 8 * KIB)
FULL = {"DISK_FULL", "CHECKPOINT_CREATE_FAILED"}  # the room kept back is enough for the rest


def run_out_of_room(ground: DiskGround, steps: list[int]) -> tuple[Tally, list[str]]:
    """Do it with so much room and no more, then with plenty; judge, and list who refused."""
    tally, refused = Tally(), list[str]()
    for free_bytes in steps:
        ground.bring("template")
        ground.fill(free_bytes=free_bytes)
        ground.run(NO_HARM, since=None)
        said = ground.said()
        wrong = [str(said)] if said.get("failed", "DISK_FULL") not in FULL else []
        refused += [f"{free_bytes // KIB} KiB"] if "failed" in said else []
        ground.make_room()
        wrong += ground.judge(said)
        tally.cases += 1
        if wrong:
            tally.wrong[f"{free_bytes // KIB} KiB free"] = wrong
    return tally, refused


@pytest.mark.parametrize("scene", ["publish"])
def test_without_room_nothing_is_half_done_and_with_room_it_goes_on(scene: str) -> None:
    with on_disk(scene, "ext4") as ground:
        tally, refused = run_out_of_room(ground, [0, *STEPS[3::5]])

        assert tally.wrong == {}
        assert refused, "there was room enough all the time"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", SCENES)
def test_however_little_room_there_is_nothing_is_half_done(scene: str) -> None:
    with on_disk(scene, "ext4") as ground:
        assert run_out_of_room(ground, list(STEPS))[0].wrong == {}
