"""A place to try things in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.app.probes.scratch import NowhereToTry, nearest, read_file, scratch, write_file


@pytest.mark.parametrize(("below", "expected"), [("", ""), ("a", ""), ("a/b/c", ""), ("x/y", "x")])
def test_nearest_directory_that_exists(tmp_path: Path, below: str, expected: str) -> None:
    (tmp_path / "x").mkdir()

    assert Path(nearest(str(tmp_path / below))) == tmp_path / expected


def test_scratch_is_ours_alone_and_goes_away_whatever_is_in_it(tmp_path: Path) -> None:
    with scratch(str(tmp_path / "not/yet/made")) as place:
        assert Path(place).stat().st_mode & 0o777 == 0o700
        os.mkdir(f"{place}/locked")
        write_file(f"{place}/locked/file", b"content")
        assert read_file(f"{place}/locked/file") == b"content"
        os.symlink("/etc", f"{place}/link")
        os.chmod(f"{place}/locked", 0)

    assert os.listdir(tmp_path) == []
    assert os.path.isdir("/etc")


def test_scratch_goes_away_when_the_trial_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), scratch(str(tmp_path)):
        raise ZeroDivisionError

    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_is_nowhere() -> None:
    with pytest.raises(NowhereToTry), scratch("/proc/self"):
        pass
