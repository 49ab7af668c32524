"""A replaced file is exactly the old or exactly the new one, and nothing else is left."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.world.disk import SystemDisk
from holdfast.world.failures import DiskIo
from holdfast.world.file_replacement import remove_leftovers, replace_file
from holdfast.world.memory import CrashingDisk, DiskFaults, SimulatedPowerLoss
from holdfast.world.ports import OpenFile

PATH = Path("/d/file")
OLD, NEW = b"old content", [b"new ", b"content, ", b"longer"]


def disk_with_old() -> CrashingDisk:
    disk = CrashingDisk()
    replace_file(disk, PATH, [OLD])
    return disk


def content(disk: CrashingDisk) -> bytes:
    return disk.open(PATH).read(999, at=0)


def operations() -> int:
    disk = disk_with_old()
    before = disk.operations
    replace_file(disk, PATH, NEW)
    return disk.operations - before


def test_the_new_content_is_there_and_durable() -> None:
    disk = disk_with_old()
    replace_file(disk, PATH, NEW)

    assert disk.names(PATH.parent) == ["file"]
    assert {content(disk.crash(seed)) for seed in range(100)} == {b"".join(NEW)}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("at", range(1, operations() + 1))
def test_a_failure_leaves_the_old_or_the_new_and_nothing_beside(number: int, at: int) -> None:
    disk = disk_with_old()
    disk.trouble.errors[disk.operations + at] = number
    with pytest.raises(Failure):
        replace_file(disk, PATH, NEW)

    is_last = at == operations()  # the sync of the directory, after the rename
    assert content(disk) == (b"".join(NEW) if is_last else OLD)
    assert disk.names(PATH.parent) == ["file"]


@pytest.mark.parametrize("at", range(1, operations() + 1))
def test_a_short_write_is_completed(at: int) -> None:
    disk = disk_with_old()
    disk.trouble.short_writes.add(disk.operations + at)
    replace_file(disk, PATH, NEW)

    assert content(disk) == b"".join(NEW)


@pytest.mark.parametrize("at", range(1, operations() + 2))
def test_power_lost_at_any_moment_leaves_the_old_or_the_new(at: int) -> None:
    disk = disk_with_old()
    disk.trouble.power_lost = disk.operations + at
    is_done = True
    try:
        replace_file(disk, PATH, NEW)
    except SimulatedPowerLoss:
        is_done = False

    found = {content(disk.crash(seed)) for seed in range(50)}
    assert found <= ({b"".join(NEW)} if is_done else {OLD, b"".join(NEW)})


class Unsynced:
    """A disk that says it has synced and has not: what a missing call would do."""

    def __init__(self, disk: CrashingDisk, *, skips: str) -> None:
        self.disk = disk
        self.skips = skips

    def __getattr__(self, name: str) -> object:
        if name == self.skips:
            return lambda *_: None
        return getattr(self.disk, name)

    def create(self, path: Path, *, mode: int) -> object:
        return Unsynced(self.disk.create(path, mode=mode), skips=self.skips)


@pytest.mark.parametrize("skips", ["sync", "sync_directory"])
def test_a_missing_sync_is_caught(skips: str) -> None:
    disk = disk_with_old()
    replace_file(Unsynced(disk, skips=skips), PATH, NEW)

    assert {content(disk.crash(seed)) for seed in range(50)} != {b"".join(NEW)}


def test_a_content_that_fails_half_way_leaves_the_old() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    disk = disk_with_old()
    with pytest.raises(KeyboardInterrupt):
        replace_file(disk, PATH, pieces())

    assert content(disk) == OLD
    assert disk.names(PATH.parent) == ["file"]


class Lossy:
    """A file that takes everything and keeps only the first bytes."""

    def __init__(self, file: OpenFile) -> None:
        self.file = file

    def append(self, data: bytes) -> int:
        self.file.append(data[:2])
        return len(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)


class Stuck(Lossy):
    """A file that takes nothing and says so."""

    def append(self, data: bytes) -> int:
        return 0


@pytest.mark.parametrize(
    ("wrapper", "reason"),
    [(Lossy, "6 bytes were kept of 19"), (Stuck, "nothing was taken")],
)
def test_a_disk_that_does_not_keep_its_word_is_found_out(wrapper: type[Lossy], reason: str) -> None:
    disk = disk_with_old()

    class Liar(Unsynced):
        def create(self, path: Path, *, mode: int) -> object:
            return wrapper(self.disk.create(path, mode=mode))

    with pytest.raises(DiskIo) as raised:
        replace_file(Liar(disk, skips=""), PATH, NEW)

    assert raised.value == DiskIo(path=str(PATH), reason=reason)
    assert content(disk) == OLD
    assert disk.names(PATH.parent) == ["file"]


def test_leftovers_of_killed_replacements_are_removed() -> None:
    disk = disk_with_old()
    disk.create(PATH.with_name("other"), mode=0o600)
    disk.trouble.power_lost = disk.operations + 3
    with pytest.raises(SimulatedPowerLoss):
        replace_file(disk, PATH, NEW)
    disk.trouble = DiskFaults()
    assert len(disk.names(PATH.parent)) == 3
    remove_leftovers(disk, PATH)

    assert disk.names(PATH.parent) == ["file", "other"]


def test_the_mode_is_the_one_given(tmp_path: Path) -> None:
    replace_file(SystemDisk(), tmp_path / "private", [b"x"])
    replace_file(SystemDisk(), tmp_path / "script", [b"x"], mode=0o700)

    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "script").stat().st_mode & 0o777 == 0o700
