"""For tests: a disk that crashes, work without threads, and what every disk must do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.failures import Failure
from holdfast.world.failures import DiskMissing, DiskOccupied, DiskUnusable
from holdfast.world.memory import (
    CrashingDisk,
    DiskFaults,
    ManualClock,
    SeededRandomSource,
    SimulatedPowerLoss,
)
from holdfast.world.ports import Disk
from holdfast.world.writer_loop import run_inline

__all__ = [
    "CrashingDisk",
    "DiskContract",
    "DiskFaults",
    "ManualClock",
    "SeededRandomSource",
    "SimulatedPowerLoss",
    "run_inline",
]


class DiskContract:
    """What every disk must do; a test class of each inherits this and provides the fixtures.

    `disk` is an empty disk and `root` a directory on it.
    """

    def test_what_is_appended_is_read(self, disk: Disk, root: Path) -> None:
        """Appends go to the end, through any descriptor."""
        first = disk.create(root / "a", mode=0o600)
        assert first.append(b"one,") == 4
        second = disk.open_to_write(root / "a")
        assert second.append(b"two,") == 4
        assert first.append(b"three") == 5

        assert first.read(100, at=0) == b"one,two,three"
        assert second.read(3, at=4) == b"two"
        assert disk.open(root / "a").read(100, at=8) == b"three"
        assert first.read(100, at=13) == b""

    def test_create_takes_no_name_that_is_in_use(self, disk: Disk, root: Path) -> None:
        """What exists is never opened by mistake."""
        disk.create(root / "a", mode=0o600).append(b"kept")

        assert failure_of_call(lambda: disk.create(root / "a", mode=0o600)) == DiskOccupied(
            path=str(root / "a")
        )
        assert disk.open(root / "a").read(9, at=0) == b"kept"

    def test_what_is_missing_is_named(self, disk: Disk, root: Path) -> None:
        """Every operation on a file that is not there says so."""
        missing = DiskMissing(path=str(root / "a"))

        assert failure_of_call(lambda: disk.open(root / "a")) == missing
        assert failure_of_call(lambda: disk.open_to_write(root / "a")) == missing
        assert failure_of_call(lambda: disk.unlink(root / "a")) == missing
        assert disk.names(root) == []

    def test_a_file_opened_to_read_takes_no_writes(self, disk: Disk, root: Path) -> None:
        """Reading cannot change anything."""
        disk.create(root / "a", mode=0o600).append(b"kept")
        file = disk.open(root / "a")

        assert isinstance(failure_of_call(lambda: file.append(b"x")), DiskUnusable)
        assert file.read(9, at=0) == b"kept"

    def test_truncate_cuts_and_appends_go_on_there(self, disk: Disk, root: Path) -> None:
        """After a cut, the end is where the cut was."""
        file = disk.create(root / "a", mode=0o600)
        file.append(b"one,two")
        file.truncate(4)
        file.append(b"2")

        assert file.read(100, at=0) == b"one,2"
        assert file.status().size == 5

    def test_rename_replaces(self, disk: Disk, root: Path) -> None:
        """The new name leads to the renamed file, the old one nowhere."""
        disk.create(root / "a", mode=0o600).append(b"old")
        file = disk.create(root / "b", mode=0o600)
        file.append(b"new")
        disk.rename(root / "b", root / "a")

        assert disk.names(root) == ["a"]
        assert disk.open(root / "a").read(9, at=0) == b"new"
        assert disk.open(root / "a").status() == file.status()

    def test_a_link_is_the_same_file(self, disk: Disk, root: Path) -> None:
        """Both names lead to one file, until one of them is taken away."""
        file = disk.create(root / "a", mode=0o600)
        disk.link(root / "a", root / "b")
        file.append(b"both")

        assert disk.open(root / "b").status() == file.status()
        assert failure_of_call(lambda: disk.link(root / "a", root / "b")) == DiskOccupied(
            path=str(root / "b")
        )
        disk.unlink(root / "a")
        assert disk.names(root) == ["b"]
        assert disk.open(root / "b").read(9, at=0) == b"both"

    def test_an_unlinked_file_lives_while_it_is_open(self, disk: Disk, root: Path) -> None:
        """The holder can tell that its name now leads elsewhere, or nowhere."""
        file = disk.create(root / "a", mode=0o600)
        file.append(b"still here")
        assert file.is_still(10)
        disk.unlink(root / "a")
        assert not file.is_still(10)
        other = disk.create(root / "a", mode=0o600)
        other.append(b"still here")

        assert file.read(99, at=0) == b"still here"
        assert (file.is_still(10), other.is_still(10)) == (False, True)

    def test_a_file_can_tell_when_another_has_written_it(self, disk: Disk, root: Path) -> None:
        """One byte more or less is noticed."""
        file = disk.create(root / "a", mode=0o600)
        file.append(b"123")
        assert file.is_still(3)
        disk.open_to_write(root / "a").append(b"4")
        assert not file.is_still(3)
        file.truncate(2)
        assert not file.is_still(3)

    def test_a_lock_has_one_holder(self, disk: Disk, root: Path) -> None:
        """A second opening gets it only once the first one is closed."""
        first = disk.create(root / "a", mode=0o600)
        second = disk.open_to_write(root / "a")

        assert (first.lock(), second.lock(), first.lock()) == (True, False, True)
        first.close()
        assert second.lock()

    def test_syncing_changes_nothing_that_is_seen(self, disk: Disk, root: Path) -> None:
        """Durability is invisible until the power fails."""
        file = disk.create(root / "a", mode=0o600)
        file.append(b"one")
        file.sync_data()
        file.append(b"two")
        file.sync()
        disk.sync_directory(root)

        assert file.read(9, at=0) == b"onetwo"
        assert disk.names(root) == ["a"]

    def test_a_closed_file_may_be_closed_again_but_not_used(self, disk: Disk, root: Path) -> None:
        """Closing is safe to repeat, and final."""
        file = disk.create(root / "a", mode=0o600)
        file.close()
        file.close()

        assert isinstance(failure_of_call(lambda: file.append(b"x")), DiskUnusable)

    def test_fresh_words_are_fresh(self, disk: Disk) -> None:
        """No word is handed out twice."""
        assert len({disk.fresh_word() for _ in range(100)}) == 100


def failure_of_call(call: Callable[[], object]) -> Failure | None:
    """What a call fails with; None if it does not."""
    try:
        call()
    except Failure as failure:
        return failure
    return None
