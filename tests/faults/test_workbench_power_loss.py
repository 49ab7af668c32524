"""Cut the power of a real file system at every call with which a workbench changes anything."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.mounts import (
    copied,
    cut_power,
    make_ext4,
    make_xfs,
    missing_for_mounts,
    mounted,
)
from tests.faults.workbench_ground import Ground, Tally
from tests.faults.workbench_scenes import SCENES
from tests.faults.workbench_tracing import MISSING, NO_HARM, Harm, killed_at

MISSING_HERE = MISSING or missing_for_mounts()
pytestmark = [
    pytest.mark.skipif(MISSING_HERE is not None, reason=f"no power can be cut: {MISSING_HERE}"),
    pytest.mark.promise("W1", "W3", "W4"),
]

SEED, SAMPLE = 7, 4
MAKERS = {"ext4": (make_ext4, 96 << 20), "xfs": (make_xfs, 320 << 20)}
SYSTEMS = [
    "ext4",
    pytest.param(
        "xfs",
        marks=pytest.mark.skipif(shutil.which("mkfs.xfs") is None, reason="mkfs.xfs is missing"),
    ),
]


class Powered(Ground):
    """A ground on a file system of its own, which can lose its power."""

    def __init__(self, base: Path, scene: str, system: str) -> None:
        self._mount, self._system = ExitStack(), system
        super().__init__(base, scene)

    def prepare(self) -> Path:
        """Make the file system."""
        self.base.mkdir()
        make, size = MAKERS[self._system]
        make(self.base / "disk", size_bytes=size)
        self._have(self.base / "disk")
        return self.base / "mount" / "home"

    def keep(self, name: str) -> None:
        """Remember all that is on the disk."""
        subprocess.run(["sync", "--file-system", self.home.root], check=True)
        self.close()
        self._have(copied(copied(self.base / "disk", name), "disk"))

    def bring(self, name: str) -> None:
        """Have the disk again as it was."""
        self.close()
        self._have(copied(self.base / name, "disk"))

    def cut(self) -> None:
        """Lose what is not on the disk, and start again from a copy of that."""
        cut_power(self.base / "mount")
        self.close()
        self._have(copied(self.base / "disk", "found"))

    def close(self) -> None:
        """Let go of the file system."""
        self._mount.close()

    def _have(self, image: Path) -> None:
        options = ("-o", "loop,nouuid" if self._system == "xfs" else "loop")
        self._mount.enter_context(mounted(self.base / "mount", *options, str(image)))


@contextmanager
def powered(base: Path, scene: str, system: str) -> Generator[Powered]:
    """A ground that can lose its power; nothing of it stays mounted."""
    ground = Powered(base / "powered", scene, system)
    try:
        yield ground
    finally:
        ground.close()


def lose_power(ground: Powered, chosen: list[Harm]) -> Tally:
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
@pytest.mark.parametrize("scene", ["checkpoint", "transaction"])
def test_power_loss_costs_nothing_that_was_acknowledged(
    scene: str, system: str, tmp_path: Path
) -> None:
    with powered(tmp_path, scene, system) as ground:
        done, *others = moments(ground)
        chosen = [done, *random.Random(SEED).sample(others, SAMPLE)]

        assert lose_power(ground, chosen).wrong == {}


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("scene", SCENES)
def test_power_loss_at_any_call_costs_nothing_that_was_acknowledged(
    scene: str, system: str, tmp_path: Path
) -> None:
    with powered(tmp_path, scene, system) as ground:
        assert lose_power(ground, moments(ground)).wrong == {}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_worker_that_does_not_sync_what_it_stages_is_caught(system: str, tmp_path: Path) -> None:
    with powered(tmp_path, "transaction", system) as ground:
        planted = replace(NO_HARM, habits=("unsynced_files",))

        assert len(lose_power(ground, [planted]).wrong) == 1
