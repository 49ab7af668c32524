"""Groups that count processes and memory together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.policy import ResourceLimits
from holdfast.confine.sandbox.sandbox import clean_groups, make_group

LIMITS = ResourceLimits(processes=7, memory_bytes=64 << 20)


def test_a_group_has_its_limits_and_is_gone_afterwards() -> None:
    group = make_group(LIMITS)
    if not group.limited:
        group.close()
        pytest.skip("no control group can be made on this machine by this user")
    written = {
        file.name: file.read_text().strip()
        for directory in group.directories
        for file in (*directory.glob("pids.max"), *directory.glob("memory.*m*"))
        if file.name in ("pids.max", "memory.max", "memory.limit_in_bytes")
    }
    assert set(written.values()) <= {"7", str(64 << 20)}
    assert len(written) == len(group.limited)
    group.close()
    assert [directory.exists() for directory in group.directories] == [False] * len(group.doors)


def test_who_enters_is_counted_in_all_of_them() -> None:
    group = make_group(LIMITS)
    if not group.limited:
        group.close()
        pytest.skip("no control group can be made on this machine by this user")
    hears, tells = os.pipe()
    child = enter(
        ProcessEntry(["sh", "-c", "read line"], {}, "/", "/bin/sh", {hears: 0}, groups=group.doors)
    )
    os.close(hears)
    members = [(path / "cgroup.procs").read_text().split() for path in group.directories]
    os.close(tells)
    os.waitpid(child, 0)
    group.close()
    assert members == [[str(child)]] * len(group.doors)


def test_where_none_can_be_made_nothing_is_promised() -> None:
    group = make_group(LIMITS)
    assert len(group.doors) == len(group.directories)
    assert bool(group.limited) == bool(group.doors)
    group.close()


def test_who_is_about_to_enter_is_not_disturbed(tmp_path: Path) -> None:
    for name in ("holdfast-left", "holdfast-used", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "holdfast-used" / "process").touch()
    clean_groups(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"holdfast-used", "other"}
    held = make_group(LIMITS)
    for directory in held.directories:
        clean_groups(directory.parent)
    assert all(directory.exists() for directory in held.directories)
    held.close()
    assert os.path.isdir(tmp_path)
