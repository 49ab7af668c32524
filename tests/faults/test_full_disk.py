"""A disk that is really full, then is not; and one that is really read-only."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.world.disk import SystemDisk
from holdfast.world.failures import DiskFull, DiskReadOnly
from holdfast.world.file_replacement import replace_file
from holdfast.world.journal_format import encode_record
from holdfast.world.journal_reader import read_journal
from tests.faults.keeper import SCHEMA, opened
from tests.faults.mounts import missing_for_mounts, mounted

MISSING = missing_for_mounts()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"no disk can be filled: {MISSING}")


def test_a_journal_goes_on_once_there_is_room_again(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=256k", "tmpfs") as root:
        (root / "filler").write_bytes(bytes(100_000))
        journal = opened(root)
        kept = 0
        with pytest.raises(DiskFull):
            while True:
                journal.append([encode_record(["x" * 3000])] * 3)
                kept += 3
        with pytest.raises(DiskFull):
            journal.append([encode_record(["x" * 3000])] * 3)
        assert len(list(journal.read())) == kept > 0

        (root / "filler").unlink()
        assert journal.append([encode_record("new")]) == kept + 1
        assert len(list(journal.read())) == kept + 1
        journal.close()
        reopened = opened(root)
        assert (reopened.seq, reopened.repairs.count) == (kept + 1, 0)
        reopened.close()


def test_a_file_is_not_replaced_by_what_has_no_room(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as root:
        replace_file(SystemDisk(), root / "file", [b"old"])
        with pytest.raises(DiskFull):
            replace_file(SystemDisk(), root / "file", [bytes(30_000)] * 9)

        assert (root / "file").read_bytes() == b"old"
        assert [path.name for path in root.iterdir()] == ["file"]


def test_a_read_only_disk_is_read_and_not_written(tmp_path: Path) -> None:
    place = tmp_path / "small"
    with mounted(place, "-t", "tmpfs", "-o", "size=256k", "tmpfs") as root:
        journal = opened(root)
        journal.append([encode_record("a")])
        journal.close()
        with mounted(tmp_path / "view", "--bind", "-o", "ro", str(root)) as view:
            with pytest.raises(DiskReadOnly):
                opened(view)
            with pytest.raises(DiskReadOnly):
                replace_file(SystemDisk(), view / "file", [b"new"])
            found = read_journal(SystemDisk(), view / "log", schema=SCHEMA)
            assert [entry.data for entry in found] == [b'"a"']
