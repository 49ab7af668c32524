"""What is repaired is kept as it was, under another name, whatever interrupts it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.world.failures import DiskDenied
from holdfast.world.journal import cut_tail, rewrite
from holdfast.world.journal_format import JournalRecord, write_line
from holdfast.world.journal_reader import survey
from holdfast.world.memory import CrashingDisk
from holdfast.world.schema import Schema

PATH = Path("/d/log")
SCHEMA: Schema[Callable[[object], object]] = Schema("notes", 1)
ONE, TWO = (write_line(JournalRecord(seq, 1, 1, b"{}")) for seq in (1, 2))
TORN, BROKEN = ONE + b"torn", ONE + b"?" + TWO + b"torn"


def disk_with(content: bytes) -> CrashingDisk:
    disk = CrashingDisk()
    file = disk.create(PATH, mode=0o600)
    file.append(content)
    file.sync()
    disk.sync_directory(PATH.parent)
    return disk


def content(disk: CrashingDisk, name: str) -> bytes | None:
    if name not in disk.names(PATH.parent):
        return None
    return disk.open(PATH.with_name(name)).read(9999, at=0)


def repair(disk: CrashingDisk) -> str:
    file = disk.open_to_write(PATH)
    found = survey(file, PATH, schema=SCHEMA)
    if found.is_damaged_inside:
        return rewrite(disk, PATH, file)
    return cut_tail(disk, PATH, file, found)


def test_a_torn_end_is_moved_aside() -> None:
    disk = disk_with(TORN)

    assert repair(disk) == "log.damaged-1"
    assert content(disk, "log") == ONE
    assert content(disk, "log.damaged-1") == b"torn"


def test_a_journal_with_damage_inside_is_rewritten_and_kept_whole() -> None:
    disk = disk_with(BROKEN)

    assert repair(disk) == "log.damaged-1"
    assert content(disk, "log") == ONE + TWO
    assert content(disk, "log.damaged-1") == BROKEN


def test_what_was_set_aside_before_is_not_touched() -> None:
    disk = disk_with(TORN)
    disk.create(PATH.with_name("log.damaged-1"), mode=0o600).append(b"before")

    assert repair(disk) == "log.damaged-2"
    assert content(disk, "log.damaged-1") == b"before"


class WithoutLinks(CrashingDisk):
    """A file system on which a file has one name."""

    def link(self, old: Path, new: Path) -> None:
        raise DiskDenied(path=str(new))


def test_where_files_have_one_name_the_original_is_copied() -> None:
    disk = WithoutLinks()
    disk.create(PATH, mode=0o600).append(BROKEN)

    assert repair(disk) == "log.damaged-1"
    assert content(disk, "log") == ONE + TWO
    assert content(disk, "log.damaged-1") == BROKEN


@pytest.mark.parametrize("damaged", [TORN, BROKEN], ids=["tail", "inside"])
@pytest.mark.parametrize("at", range(1, 30))
def test_an_interrupted_repair_loses_no_byte(damaged: bytes, at: int) -> None:
    disk = disk_with(damaged)
    disk.trouble.errors[disk.operations + at] = errno.EIO
    with suppress(Failure):
        repair(disk)
    for seed in range(20):
        after = disk.crash(seed)
        kept, aside = content(after, "log"), content(after, "log.damaged-1")

        assert kept is not None
        assert damaged in {kept, aside, kept + (aside or b"")}
