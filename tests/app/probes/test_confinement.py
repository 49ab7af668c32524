"""What this kernel lets us do, tried in processes of their own."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from tests.app.probes.running import run_probe

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="Linux only")


def test_namespaces_answer_and_leave_us_where_we_are() -> None:
    before = os.readlink("/proc/self/ns/user")
    answer = run_probe("confinement", "namespaces")

    assert answer["facts"]["is_allowed"] or answer["facts"]["reason"]
    assert os.readlink("/proc/self/ns/user") == before


def test_overlay_keeps_the_lower_file_and_leaves_nothing_behind(tmp_path: Path) -> None:
    answer = run_probe("confinement", "overlay", tmp_path)

    assert os.listdir(tmp_path) == []
    if "refused" in answer:
        pytest.skip(f"no overlay can be mounted here: {answer['refused']['reason']}")
    assert answer == {"facts": {"lower_kept": True, "upper_holds": True}}


def test_cgroup_is_killed_whole() -> None:
    answer = run_probe("confinement", "cgroup")

    if "refused" in answer:
        pytest.skip(f"no control group of our own: {answer['refused']['reason']}")
    assert answer == {"facts": {"is_killed": True}}


def test_landlock_answers() -> None:
    assert run_probe("confinement", "landlock")["facts"].keys() == {"abi"}
