"""All names are listed, as they were at one moment, and none that is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.workbench.model import STAGE_PREFIX
from holdfast.workbench.scan.directory import (
    list_names,
    list_with_stats,
    mount_points,
    mounted_below,
)
from holdfast.workbench.scan.stat_cache import stat_line
from tests.faults.mounts import missing_for_mounts, mounted


def test_every_name_comes_with_its_path_but_for_the_stage(tmp_path: Path) -> None:
    for name in (b"a", b"\xff", os.fsencode(f"{STAGE_PREFIX}1")):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"")
    directory = os.open(tmp_path, os.O_RDONLY)

    assert sorted(list_names(directory, b"")) == [(b"a", b"a"), (b"\xff", b"\xff")]
    listed = list_names(directory, b"d")
    first = next(listed)
    (tmp_path / "late").write_bytes(b"")
    assert {way for _, way in (first, *listed)} == {
        b"d/a",
        b"d/\xff",
        os.fsencode(f"d/{STAGE_PREFIX}1"),  # only at the top it is ours
    }
    os.close(directory)


def test_every_name_is_seen_with_what_the_system_says_of_it(tmp_path: Path) -> None:
    names = sorted((b"b", b"a", b"\xff", os.fsencode(f"{STAGE_PREFIX}1")))
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).symlink_to("nowhere")
    directory = os.open(tmp_path, os.O_RDONLY)

    said = [os.stat(name, dir_fd=directory, follow_symlinks=False) for name in names]
    found = list_with_stats(directory)

    assert found == [(name, stat_line(each), each) for name, each in zip(names, said, strict=True)]
    os.close(directory)


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_mounts_below_a_directory_are_found_also_of_the_same_file_system(tmp_path: Path) -> None:
    for name in ("project/d", "project-2", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    directory = os.open(tmp_path / "project", os.O_RDONLY)
    with (
        mounted(tmp_path / "project" / "d" / "odd name", "--bind", str(tmp_path / "elsewhere")),
        mounted(tmp_path / "project-2" / "other", "-t", "tmpfs", "holdfast-test"),
    ):
        found = mounted_below(directory)
        temporary = list(mount_points(b"tmpfs holdfast-test"))
    os.close(directory)

    assert found == {b"d/odd name"}
    assert temporary == [os.fsencode(tmp_path / "project-2" / "other")]
