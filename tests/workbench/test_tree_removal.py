"""A directory is removed with all that is in it, and nothing else is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.workbench.tree_removal import remove_whole
from holdfast.world.failures import DiskDenied
from tests.parts.ordinary_user import ordinary_directory
from tests.workbench.unprivileged import held_back


def test_everything_goes_and_links_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    whole = tmp_path / "whole"
    (whole / "1" / "2").mkdir(parents=True)
    (whole / "2").mkdir()  # names that it gives itself are in use
    (whole / "1" / "link").symlink_to(outside)
    (whole / "link").symlink_to(outside / "kept")
    os.mkfifo(whole / "1" / "2" / "fifo")
    (whole / os.fsdecode(b"\xff\n")).write_text("any name")

    remove_whole(whole)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "kept").read_text() == "kept"


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    remove_whole(tmp_path / "nothing")
    remove_whole(tmp_path / "nowhere" / "nothing")


def test_a_file_or_a_link_in_its_place_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "file").write_text("")

    remove_whole(tmp_path / "link")
    remove_whole(tmp_path / "file")

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    deep = os.open(tmp_path, os.O_RDONLY)
    os.mkdir("whole", dir_fd=deep)
    for name in ("whole", *["d" * 200] * 3000):
        if name != "whole":
            os.mkdir(name, dir_fd=deep)
        below = os.open(name, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)

    remove_whole(tmp_path / "whole")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="there is no way to open what is closed")
def test_what_its_owner_closed_to_himself_goes_too() -> None:
    with ordinary_directory() as base:
        base.chmod(0o777)
        with held_back():
            (base / "whole" / "closed" / "below").mkdir(parents=True)
            (base / "whole" / "closed" / "file").write_text("")
            (base / "whole" / "closed" / "below" / "file").write_text("")
            (base / "whole" / "closed" / "below").chmod(0)
            (base / "whole" / "closed").chmod(0o555)
            (base / "whole").chmod(0)

            remove_whole(base / "whole")

        assert list(base.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes what others may not remove")
def test_what_cannot_be_removed_is_said() -> None:
    with ordinary_directory() as base:
        base.chmod(0o777)
        (base / "whole" / "of root").mkdir(parents=True)
        (base / "whole" / "of root" / "file").write_text("")
        (base / "whole").chmod(0o777)
        with held_back(), pytest.raises(DiskDenied) as raised:
            remove_whole(base / "whole")

        assert raised.value.path == str(base / "whole")
        assert (base / "whole" / "of root" / "file").exists()
