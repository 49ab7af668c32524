"""A file is filled with exactly what the other holds, and takes no more space."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from random import Random

import pytest

from holdfast.workbench.draft.project_copy import copy_data, reflink, sync_all
from tests.faults.mounts import missing_for_mounts, mounted

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of empty space")


def filled(source: Path, target: Path) -> None:
    here = os.open(source, os.O_RDONLY)
    there = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    copy_data(here, there, os.fstat(here).st_size)
    os.close(here)
    os.close(there)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 1 << 20, (1 << 20) + 1, (3 << 20) + 5])
def test_all_bytes_are_copied(tmp_path: Path, size: int) -> None:
    content = Random(size).randbytes(size)
    (tmp_path / "source").write_bytes(content)

    filled(tmp_path / "source", tmp_path / "target")

    assert (tmp_path / "target").read_bytes() == content


@LINUX
def test_empty_space_stays_empty(tmp_path: Path) -> None:
    with (tmp_path / "source").open("wb") as file:
        file.seek(1 << 24)
        file.write(b"middle")
        file.truncate(1 << 32)

    filled(tmp_path / "source", tmp_path / "target")

    found = (tmp_path / "target").stat()
    assert found.st_size == 1 << 32
    assert found.st_blocks * 512 < 1 << 20
    with (tmp_path / "target").open("rb") as file:
        file.seek(1 << 24)
        assert file.read(7) == b"middle\0"


@LINUX
@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_another_file_system_is_no_obstacle(tmp_path: Path) -> None:
    content = Random(1).randbytes(3 << 20)
    (tmp_path / "source").write_bytes(content)
    with mounted(tmp_path / "other", "-t", "tmpfs", "none") as other:
        filled(tmp_path / "source", other / "target")

        assert (other / "target").read_bytes() == content
        with (tmp_path / "source").open() as here, (other / "shared").open("w+") as there:
            with pytest.raises(OSError) as raised:
                reflink(here.fileno(), there.fileno())
            assert raised.value.errno in {errno.EXDEV, errno.EOPNOTSUPP}


def test_all_is_synced_or_an_error_raised(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    sync_all(directory)
    os.close(directory)
    if sys.platform == "linux":
        with pytest.raises(OSError) as raised:
            sync_all(directory)
        assert raised.value.errno == errno.EBADF
