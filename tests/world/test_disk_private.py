"""What is made on the way is as private as the directory itself."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from holdfast.world.disk import make_private


def modes(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


def test_all_that_is_missing_is_made_for_us_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    make_private(tmp_path / "a" / "b" / "c")

    made = (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c")
    assert modes(*made) == [0o755, 0o700, 0o700, 0o700]


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o750)
    (tmp_path / "link").symlink_to("a")
    make_private(tmp_path / "link" / "b")
    make_private(tmp_path / "a")

    assert modes(tmp_path / "a", tmp_path / "a" / "b") == [0o750, 0o700]


def test_what_is_no_directory_stands_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        make_private(tmp_path / "file" / "below")
