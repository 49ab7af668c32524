"""What only the real disk can show; the rest is in its contract."""

from __future__ import annotations

import resource
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.world.disk import SystemDisk
from holdfast.world.failures import DiskMissing, DiskUnusable


def test_a_created_file_is_private(tmp_path: Path) -> None:
    SystemDisk().create(tmp_path / "a", mode=0o600).close()

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiskMissing) as raised:
        SystemDisk().sync_directory(tmp_path / "none")

    assert raised.value == DiskMissing(path=str(tmp_path / "none"))
    assert isinstance(raised.value.__cause__, OSError)


@pytest.fixture
def file_bytes_max() -> Iterator[int]:
    """No file of this process may grow beyond this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, before)


def test_a_disk_may_take_less_than_all(tmp_path: Path, file_bytes_max: int) -> None:
    file = SystemDisk().create(tmp_path / "a", mode=0o600)

    assert file.append(b"x" * 1500) == file_bytes_max
    with pytest.raises(DiskUnusable) as raised:
        file.append(b"x")
    assert raised.value == DiskUnusable(path=str(tmp_path / "a"), reason="File too large")
