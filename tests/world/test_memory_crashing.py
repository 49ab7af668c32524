"""The twin loses what a real disk may lose, and nothing else."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.world.failures import DiskFull, DiskIo, DiskQuota, DiskReadOnly
from holdfast.world.memory import CrashingDisk, DiskFaults, SimulatedPowerLoss

ROOT = Path("/d")
SEEDS = range(1000)


def content(disk: CrashingDisk, name: str) -> bytes | None:
    return disk.open(ROOT / name).read(9999, at=0) if name in disk.names(ROOT) else None


def test_what_is_synced_survives_every_crash() -> None:
    disk = CrashingDisk()
    file = disk.create(ROOT / "a", mode=0o600)
    file.append(b"kept")
    file.sync_data()
    disk.sync_directory(ROOT)

    assert {content(disk.crash(seed), "a") for seed in SEEDS} == {b"kept"}


def test_what_is_not_synced_may_be_lost_cut_or_zeros() -> None:
    disk = CrashingDisk()
    file = disk.create(ROOT / "a", mode=0o600)
    file.append(b"kept")
    file.sync()
    disk.sync_directory(ROOT)
    file.append(b"new")
    found = {content(disk.crash(seed), "a") for seed in SEEDS}

    assert {b"kept", b"keptn", b"keptne", b"keptnew", b"keptn\0\0", b"kept\0\0w"} <= found
    assert {b"kept"} == {data[:4] for data in found if data is not None}


def test_a_cut_that_is_not_synced_may_be_undone() -> None:
    disk = CrashingDisk()
    file = disk.create(ROOT / "a", mode=0o600)
    file.append(b"long")
    file.sync()
    disk.sync_directory(ROOT)
    file.truncate(2)

    assert {content(disk.crash(seed), "a") for seed in SEEDS} == {b"long", b"lo"}


def test_names_that_are_not_synced_may_be_lost_in_any_combination() -> None:
    disk = CrashingDisk()
    for name in ("a", "b", "c"):
        disk.create(ROOT / name, mode=0o600)
    disk.sync_directory(ROOT)
    disk.rename(ROOT / "a", ROOT / "b")
    disk.unlink(ROOT / "c")
    disk.link(ROOT / "b", ROOT / "d")

    assert {tuple(disk.crash(seed).names(ROOT)) for seed in SEEDS} == {
        (*names, *more)
        for names in (("a", "b"), ("b",))
        for more in ((), ("c",), ("d",), ("c", "d"))
    }


def test_a_crash_is_reproducible_and_changes_nothing() -> None:
    disk = CrashingDisk()
    disk.create(ROOT / "a", mode=0o600).append(b"0123456789")

    assert [content(disk.crash(seed), "a") for seed in SEEDS] == [
        content(disk.crash(seed), "a") for seed in SEEDS
    ]
    assert content(disk, "a") == b"0123456789"


def test_after_a_failed_sync_a_later_one_saves_only_what_came_after() -> None:
    disk = CrashingDisk()
    file = disk.create(ROOT / "a", mode=0o600)
    disk.sync_directory(ROOT)
    file.append(b"gone")
    disk.trouble.errors[disk.operations + 1] = errno.EIO
    with pytest.raises(DiskIo):
        file.sync()
    file.append(b"kept")
    file.sync()

    assert {content(disk.crash(seed), "a") for seed in SEEDS} == {b"gonekept", b"\0\0\0\0kept"}


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ENOSPC, DiskFull(path="/d/a")),
        (errno.EDQUOT, DiskQuota(path="/d/a")),
        (errno.EROFS, DiskReadOnly(path="/d/a")),
        (errno.EIO, DiskIo(path="/d/a", reason="Input/output error")),
    ],
)
def test_trouble_comes_when_it_was_asked_for(number: int, failure: Failure) -> None:
    disk = CrashingDisk(DiskFaults(errors={2: number}, short_writes={3}, power_lost=4))
    file = disk.create(ROOT / "a", mode=0o600)

    with pytest.raises(type(failure)) as raised:
        file.append(b"1234")
    assert raised.value == failure
    assert file.append(b"1234") == 2
    for _ in range(2):
        with pytest.raises(SimulatedPowerLoss):
            file.append(b"1234")
