"""Both disks do what every disk must do."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.world.disk import SystemDisk
from holdfast.world.testing import CrashingDisk, DiskContract


class TestSystemDisk(DiskContract):
    """The disk of this machine."""

    @pytest.fixture
    def disk(self) -> SystemDisk:
        return SystemDisk()

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path


class TestCrashingDisk(DiskContract):
    """The disk in memory."""

    @pytest.fixture
    def disk(self) -> CrashingDisk:
        return CrashingDisk()

    @pytest.fixture
    def root(self) -> Path:
        return Path("/state")
