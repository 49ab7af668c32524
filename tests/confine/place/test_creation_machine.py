"""What may keep a place from being made is looked up where the system says it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import machine_for
from tests.faults.mounts import missing_for_mounts, mounted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")


def test_this_machine(tmp_path: Path) -> None:
    machine = machine_for(PlaceSpec(directory="/proc/self", project=str(tmp_path)))

    assert (machine.filesystem, machine.mounted_below) == ("proc", None)
    assert machine.namespaces_max is None or machine.namespaces_max >= 0


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
@pytest.mark.parametrize("name", ["plain", "with space", "back\\slash", "new\nline"])
def test_what_is_mounted_below_a_project_and_where_a_draft_is(tmp_path: Path, name: str) -> None:
    project, beside = tmp_path / "project", tmp_path / "project-beside"
    project.mkdir()
    with (
        mounted(project / name, "-t", "tmpfs", "none") as below,
        mounted(beside, "-t", "ramfs", "none"),
    ):
        machine = machine_for(PlaceSpec(directory=str(beside), project=str(project)))

    assert (machine.filesystem, machine.mounted_below) == ("ramfs", str(below))
