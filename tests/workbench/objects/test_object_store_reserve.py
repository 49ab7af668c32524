"""Room is kept back while there is plenty, and given back when it is needed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.workbench.objects.formats import ObjectKind
from holdfast.workbench.objects.object_store import RESERVE_BYTES, ObjectStore, Ports, Reserve
from holdfast.workbench.objects.objects import Objects
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskFull
from tests.faults.mounts import missing_for_mounts, mounted


def test_it_takes_up_room_until_it_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "reserve.bin"
    reserve = Reserve(path)
    reserve.renew()
    assert reserve.held_bytes == RESERVE_BYTES
    assert path.stat().st_blocks * 512 >= RESERVE_BYTES
    reserve.release()
    assert path.stat().st_blocks == 0
    assert reserve.held_bytes == 0
    reserve.renew()
    assert reserve.held_bytes == RESERVE_BYTES


def test_it_is_never_a_reason_to_fail(tmp_path: Path) -> None:
    nowhere = Reserve(tmp_path / "nowhere" / "reserve.bin")
    nowhere.renew()
    nowhere.release()
    (tmp_path / "reserve.bin").mkdir()
    occupied = Reserve(tmp_path / "reserve.bin")
    occupied.renew()
    occupied.release()

    assert nowhere.held_bytes == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.ENOTSUP])
def test_where_there_is_no_room_none_is_kept_back(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, at: int, size: int) -> None:
        os.ftruncate(descriptor, 5)
        raise OSError(number, "no room")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    reserve = Reserve(tmp_path / "reserve.bin")
    reserve.renew()

    assert reserve.held_bytes == 0


def test_it_is_released_when_the_disk_is_full_and_renewed_at_the_next_opening(
    tmp_path: Path,
) -> None:
    def object_store() -> ObjectStore:
        return ObjectStore.open(tmp_path / "store", Ports(SystemDisk()), patience=0)

    def fail(objects: Objects) -> None:
        objects.put(ObjectKind.BLOB, b"data")
        raise DiskFull(path="x")

    opened = object_store()
    assert opened.reserve.held_bytes == RESERVE_BYTES
    with pytest.raises(DiskFull):
        opened.change(fail)
    assert opened.reserve.held_bytes == 0
    opened.close()
    again = object_store()
    assert again.reserve.held_bytes == RESERVE_BYTES
    again.close()


@pytest.mark.promise("W7")
@pytest.mark.skipif(missing_for_mounts() is not None, reason=f"{missing_for_mounts()}")
def test_a_store_opens_on_a_full_disk_with_the_reserve_that_all_stores_share(
    tmp_path: Path,
) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=80m", "tmpfs") as disk:
        for name in ("one", "other"):
            ObjectStore.open(disk / name, Ports(SystemDisk()), patience=0).close()
        assert [path.name for path in disk.rglob("reserve.bin")] == ["reserve.bin"]
        with pytest.raises(OSError, match="No space"), (disk / "filler").open("wb") as filler:
            while True:
                filler.write(bytes(1 << 20))
        opened = ObjectStore.open(disk / "one", Ports(SystemDisk()), patience=0)

        assert opened.read(lambda objects: objects.rows.checkpoints.count()) == 0
        opened.close()
