"""A layer is listed as it is, whatever was put into it, and nothing in it is followed."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from holdfast.workbench.coverage import DEPTH_MAX
from holdfast.workbench.diff.tree_changes import LayerEntry
from holdfast.workbench.model import STAGE_PREFIX
from holdfast.workbench.scan.overlay_reader import listed
from tests.parts.ordinary_user import ordinary_directory
from tests.workbench.unprivileged import held_back

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has layers")


def looked(layer: Path) -> dict[bytes, LayerEntry]:
    """What is listed, without what tells one moment from another."""
    opened = os.open(layer, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return {each.path: each._replace(stamp=(0, 0, 0)) for each in listed(opened)}
    finally:
        os.close(opened)


def test_every_name_is_listed_with_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d").chmod(0o750)
    (tmp_path / "d" / "e").chmod(0o755)
    (tmp_path / os.fsdecode(b"\xff\n")).write_text("")
    (tmp_path / os.fsdecode(b"\xff\n")).chmod(0o644)
    (tmp_path / "d" / "link").symlink_to("/etc")
    os.setxattr(tmp_path / "d" / "e", "user.overlay.opaque", b"y")
    os.setxattr(tmp_path / "d", "user.overlay.opaque", b"x")
    (tmp_path / f"{STAGE_PREFIX}1").mkdir()
    (tmp_path / f"{STAGE_PREFIX}1" / "0").write_text("")

    assert looked(tmp_path) == {
        b"d": LayerEntry(b"d", stat.S_IFDIR | 0o750),
        b"d/e": LayerEntry(b"d/e", stat.S_IFDIR | 0o755, is_opaque=True),
        b"d/link": LayerEntry(b"d/link", stat.S_IFLNK | 0o777),
        b"\xff\n": LayerEntry(b"\xff\n", stat.S_IFREG | 0o644),
    }


def test_a_directory_closed_to_us_is_said_to_be() -> None:
    with ordinary_directory() as base:
        base.chmod(0o777)
        with held_back():
            (base / "layer" / "closed" / "x").mkdir(parents=True)
            (base / "layer" / "closed").chmod(0)

            found = looked(base / "layer")

        assert found == {b"closed": LayerEntry(b"closed", stat.S_IFDIR, is_closed=True)}


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2 * DEPTH_MAX):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    assert len(looked(tmp_path)) == DEPTH_MAX


def test_every_write_changes_the_stamp(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("1")
    opened = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    before = set(listed(opened))

    assert set(listed(opened)) == before
    (tmp_path / "f").write_text("2")
    assert set(listed(opened)) != before
    os.close(opened)
