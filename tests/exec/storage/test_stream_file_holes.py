"""A hole gives the disk back what stood there, and nothing else changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.exec.storage.stream_file import punch


@pytest.mark.skipif(sys.platform != "linux", reason="no holes can be punched here")
def test_a_hole_reads_as_nothing_and_the_rest_stays(tmp_path: Path) -> None:
    size = 64 * 2**10
    path = tmp_path / "file"
    path.write_bytes(b"x" * 4 * size)
    file = os.open(path, os.O_RDWR)
    punch(file, size, size)
    whole = path.stat().st_blocks
    punch(file, size, 3 * size)
    os.fsync(file)
    os.close(file)

    assert path.read_bytes() == b"x" * size + bytes(2 * size) + b"x" * size
    assert path.stat().st_blocks * 512 == 2 * size
    assert whole in (0, 4 * size // 512)  # a disk may not have decided yet
