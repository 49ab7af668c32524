"""A log keeps what it was given, for its next reader and its next writer."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from holdfast.workbench.records import RecordLog
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskFull, DiskOccupied, JournalHeld, StoreReadOnly
from holdfast.world.testing import CrashingDisk, DiskFaults, SimulatedPowerLoss


class Word(msgspec.Struct, frozen=True):
    text: str


def words(book: RecordLog[Word]) -> list[str]:
    return [word.text for word in book.all()]


def test_what_is_added_is_read_by_anyone(tmp_path: Path) -> None:
    book = RecordLog(SystemDisk(), tmp_path / "a" / "b" / "words.jsonl", Word)
    assert words(book) == []
    assert not (tmp_path / "a").exists()

    book.add(Word("one"))
    book.add(Word("two"))
    other = RecordLog(SystemDisk(), tmp_path / "a" / "b" / "words.jsonl", Word)
    assert words(other) == ["one", "two"]
    with pytest.raises(JournalHeld):
        other.add(Word("three"))
    book.close()
    other.add(Word("three"))
    book.close()
    assert words(book) == ["one", "two", "three"]


def test_a_person_can_read_it(tmp_path: Path) -> None:
    book = RecordLog(SystemDisk(), tmp_path / "words.jsonl", Word)
    book.add(Word("Grüße"))
    lines = (tmp_path / "words.jsonl").read_text().splitlines()
    assert [msgspec.json.decode(line)["record"] for line in lines[1:]] == [{"text": "Grüße"}]


def test_a_damaged_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    book = RecordLog(SystemDisk(), path, Word)
    for text in ("one", "two", "three"):
        book.add(Word(text))
    book.close()
    path.write_bytes(path.read_bytes().replace(b"two", b"tw0"))
    assert words(book) == ["one", "three"]
    book.add(Word("four"))
    assert words(book) == ["one", "three", "four"]


def test_who_writes_again_reads_only_what_others_added(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    book, other = (RecordLog(SystemDisk(), path, Word) for _ in range(2))
    for text in ("one", "two"):
        book.add(Word(text))
    book.close()
    other.add(Word("three"))
    other.close()
    book.add(Word("four"))
    book.close()
    assert words(book) == ["one", "two", "three", "four"]
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    assert [(line["seq"], line["epoch"]) for line in lines if "record" in line] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
    ]
    assert not list(tmp_path.glob("*.damaged*"))


def test_where_no_directory_can_be_the_disk_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    book = RecordLog(SystemDisk(), tmp_path / "taken" / "sub" / "words.jsonl", Word)
    with pytest.raises(DiskOccupied):
        book.add(Word("one"))


@pytest.mark.promise("W11")
@pytest.mark.parametrize("moment", range(1, 40))
def test_whenever_the_power_fails_what_was_added_is_there(moment: int, tmp_path: Path) -> None:
    disk, kept = CrashingDisk(DiskFaults(power_lost=moment)), list[str]()
    book = RecordLog(disk, tmp_path / "words.jsonl", Word)
    try:
        for text in ("one", "two", "three"):
            book.add(Word(text))
            kept.append(text)
            book.close()
    except SimulatedPowerLoss:
        pass
    for seed in range(10):
        after = RecordLog(disk.crash(seed), tmp_path / "words.jsonl", Word)
        assert words(after)[: len(kept)] == kept
        after.add(Word("four"))
        assert words(after)[-1] == "four"


def test_a_full_disk_takes_nothing_and_then_goes_on(tmp_path: Path) -> None:
    for moment in range(1, 20):
        disk = CrashingDisk(DiskFaults(errors={moment: errno.ENOSPC}))
        book = RecordLog(disk, tmp_path / "words.jsonl", Word)
        kept: list[str] = []
        for text in ("one", "two"):
            try:
                book.add(Word(text))
                kept.append(text)
            except DiskFull:
                pass
            except StoreReadOnly:
                book.close()  # its sync failed: only a new writer knows what is there
        assert set(kept) <= set(words(book))
