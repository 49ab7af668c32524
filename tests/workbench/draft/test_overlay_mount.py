"""The place of a draft is found, or made anew, over the directory that is the project now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.confine import Place, PlaceSpec, end
from holdfast.confine.failures import PlaceUnavailable
from holdfast.workbench.draft.overlay_mount import (
    drop_layer,
    find_or_create_place,
    layer_of,
    processes_in,
)
from holdfast.workbench.failures import ProjectRefused
from holdfast.world.failures import DiskMissing
from tests.workbench.drafting_table import run

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such drafts"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]


@pytest.fixture
def spec(tmp_path: Path) -> Iterator[PlaceSpec]:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "f").write_text("first")
    yield PlaceSpec(directory=str(tmp_path / "draft"), project=str(tmp_path / "project"))
    end(tmp_path / "draft")


def sh(spec: PlaceSpec, place: Place, script: str) -> str:
    return run(place, script, cwd=Path(spec.project))


def test_the_same_place_is_found_again(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place, find_or_create_place(spec) as again:
        assert again.holder == place.holder
        assert processes_in(again) == 0


def test_one_that_is_lost_is_made_anew_with_all_that_was_written(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place:
        sh(spec, place, "echo written > new")
        end(spec.directory)
    with find_or_create_place(spec) as again:
        assert again.holder != place.holder
        assert sh(spec, again, "cat new f") == "written\nfirst"


def _replace_project(spec: PlaceSpec) -> None:
    shutil.rmtree(spec.project)
    os.mkdir(spec.project)
    Path(spec.project, "f").write_text("second")


def test_a_project_that_was_replaced_is_shown_as_it_is(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place:
        sh(spec, place, "echo written > new; cat f")
        _replace_project(spec)
    with find_or_create_place(spec) as again:
        assert sh(spec, again, "cat new f") == "written\nsecond"


def test_a_project_that_was_removed_has_no_place(spec: PlaceSpec) -> None:
    with find_or_create_place(spec):
        shutil.rmtree(spec.project)
    with pytest.raises(PlaceUnavailable):
        find_or_create_place(spec)


def test_nobody_is_let_into_a_place_that_no_longer_covers_the_project(spec: PlaceSpec) -> None:
    for _ in range(10):  # the new directory often gets the number of the old one
        with find_or_create_place(spec) as place:
            sh(spec, place, "echo written > new")
            _replace_project(spec)
        with find_or_create_place(spec) as again:
            sh(spec, again, "echo by the agent > f")
        assert Path(spec.project, "f").read_text() == "second"
        assert sorted(os.listdir(spec.project)) == ["f"]


def test_who_runs_over_a_project_that_was_replaced_is_not_killed_for_it(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place:
        sh(spec, place, "setsid sleep 100 > /dev/null 2>&1 & true")
        _replace_project(spec)

        with pytest.raises(ProjectRefused) as raised:
            find_or_create_place(spec)

        assert (raised.value.path, processes_in(place)) == (spec.project, 1)


def test_a_place_of_which_nobody_noted_the_ground_is_believed(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place:
        Path(spec.directory, "ground").unlink()
        with find_or_create_place(spec) as again:
            assert again.holder == place.holder


def test_a_layer_that_was_dropped_is_gone_with_the_next_place(spec: PlaceSpec) -> None:
    with find_or_create_place(spec) as place:
        sh(spec, place, "echo written > new")
    end(spec.directory)

    drop_layer(spec)

    assert not layer_of(spec).exists()
    with find_or_create_place(spec) as again:
        assert sh(spec, again, "ls") == "f\n"
    assert sorted(os.listdir(spec.directory)) == ["ground", "holder.json", "lock", "upper", "work"]
    end(spec.directory)
    shutil.rmtree(layer_of(spec))
    with pytest.raises(DiskMissing):
        drop_layer(spec)


_ON_ITS_WAY_OUT = """
import fcntl, sys, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(0.2)
"""


def test_who_was_killed_while_it_made_a_place_is_waited_for(spec: PlaceSpec) -> None:
    os.mkdir(spec.directory)
    lock = os.path.join(spec.directory, "lock")
    command = [sys.executable, "-c", _ON_ITS_WAY_OUT, lock]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as dying:
        assert dying.stdout is not None
        dying.stdout.readline()
        with find_or_create_place(spec) as place:
            assert sh(spec, place, "ls") == "f\n"
