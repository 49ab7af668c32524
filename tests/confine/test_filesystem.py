"""What is seen of a file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxRequestUnfit
from holdfast.confine.filesystem import beneath, directory_info, path_info, resolved, system_paths
from holdfast.confine.policy import ABSENT, PathInfo, PathType


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    os.link(tmp_path / "file", tmp_path / "second")
    (tmp_path / "link").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_each_sort_is_known_from_here_and_from_another_root(directory: Path) -> None:
    root = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    expected = {
        "directory": PathInfo(PathType.DIRECTORY, 2),
        "fifo": PathInfo(PathType.OTHER),
        "file": PathInfo(PathType.FILE, 2),
        "link": PathInfo(PathType.LINK),
        "second": PathInfo(PathType.FILE, 2),
    }
    try:
        here = directory_info(str(directory), root=None)
        there = {path: path_info(path, root=root) for path in ("/file", "/file/below", "/absent")}
    finally:
        os.close(root)
    assert {Path(path).name: found for path, found in here.items()} == expected
    assert there == {"/file": expected["file"], "/file/below": ABSENT, "/absent": ABSENT}


def test_links_are_followed_in_our_view_and_refused_in_another(directory: Path) -> None:
    (directory / "way").symlink_to(directory / "directory")
    assert resolved(str(directory / "way"), root=None) == os.path.realpath(directory / "directory")
    root = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        assert resolved("/directory/", root=root) == "/directory"
        with pytest.raises(SandboxRequestUnfit):
            resolved("/way/x", root=root)
    finally:
        os.close(root)


def test_the_ground_is_what_this_machine_has() -> None:
    found = system_paths()
    assert "/usr" in found.paths
    assert all(os.path.exists(path) for path in found.paths)
    assert "/etc/shadow" not in found.paths
    assert all(os.path.realpath(path).startswith("/usr/") for path in found.links)
    assert all(os.readlink(path) == target for path, target in found.links.items())
    assert beneath("/a/b", None) == "/a/b"
    assert beneath("/", 3) == "."
