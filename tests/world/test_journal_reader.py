"""A journal is read by anyone, at any time, in the words of today's schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.world.failures import DiskMissing, StoreForeign
from holdfast.world.journal_format import (
    Damage,
    DamageReason,
    JournalHeader,
    JournalRecord,
    Repairs,
    encode_record,
    write_line,
)
from holdfast.world.journal_reader import (
    JournalEntry,
    Survey,
    last_seq,
    read_entries,
    read_journal,
    survey,
)
from holdfast.world.memory import CrashingDisk
from holdfast.world.ports import OpenFile
from holdfast.world.schema import Schema

PATH = Path("/d/log")
SCHEMA: Schema[Callable[[object], object]] = Schema("notes", 3, (str, lambda text: [text]))


def opening(log: str = "log1") -> bytes:
    data = encode_record(JournalHeader(1, log, "notes", Repairs()))
    return write_line(JournalRecord(0, 1, 1, data, is_opening=True))


def line(seq: int, *, version: int = 3) -> bytes:
    return write_line(JournalRecord(seq, 1, version, encode_record(seq)))


def file_of(content: bytes) -> OpenFile:
    file = CrashingDisk().create(PATH, mode=0o600)
    file.append(content)
    return file


def test_each_record_is_brought_up_to_date_from_its_own_version() -> None:
    file = file_of(opening() + line(1, version=1) + line(2, version=2) + line(3, version=3))

    assert list(read_entries(file, PATH, schema=SCHEMA)) == [
        JournalEntry(1, b'["1"]'),
        JournalEntry(2, b"[2]"),
        JournalEntry(3, b"3"),
    ]


def test_a_reader_goes_on_where_it_stopped_and_ends_where_it_is_told() -> None:
    content = opening() + line(1) + line(2) + line(3)
    found = read_entries(
        file_of(content), PATH, schema=SCHEMA, after=1, until=len(content) - len(line(3))
    )

    assert list(found) == [JournalEntry(2, b"2")]


LONG = write_line(JournalRecord(3, 1, 3, encode_record("x" * 200_000)))


@pytest.mark.parametrize(
    ("content", "last"),
    [
        (b"", 0),
        (opening(), 0),
        (opening() + line(1) + line(2), 2),
        (opening() + line(1) + line(2)[:-5], 1),
        (opening() + b"".join(map(line, range(1, 5_000))), 4_999),
        (opening() + line(1) + line(2) + LONG, 3),
        (opening() + line(1) + line(2) + LONG[:-5], 2),
        (opening() + line(1) + b"\0" * 300_000, 1),
    ],
)
def test_the_last_number_is_found_at_the_end(content: bytes, last: int) -> None:
    disk = CrashingDisk()
    disk.create(PATH, mode=0o600).append(content)

    assert last_seq(disk, PATH) == last


def test_what_is_not_finished_is_not_there_yet() -> None:
    disk = CrashingDisk()
    disk.create(PATH, mode=0o600).append(opening() + line(1) + line(2)[:-5])

    assert list(read_journal(disk, PATH, schema=SCHEMA)) == [JournalEntry(1, b"1")]


def test_a_reader_needs_a_journal() -> None:
    with pytest.raises(DiskMissing):
        list(read_journal(CrashingDisk(), PATH, schema=SCHEMA))


def test_two_logs_in_one_file_are_refused() -> None:
    other = write_line(
        JournalRecord(
            0, 2, 1, encode_record(JournalHeader(1, "log2", "notes", Repairs())), is_opening=True
        )
    )
    with pytest.raises(StoreForeign) as raised:
        list(read_entries(file_of(opening() + other), PATH, schema=SCHEMA))

    assert raised.value == StoreForeign(path=str(PATH), expected="log1", found="log2")


def test_a_survey_says_what_is_there_and_what_is_wrong() -> None:
    content = opening() + b"?" + line(1) + b"!!"
    end = len(content) - 2

    assert survey(file_of(content), PATH, schema=SCHEMA) == Survey(
        log="log1",
        seq=1,
        epoch=1,
        end=end,
        size=end + 2,
        is_terminated=True,
        is_damaged_inside=True,
        repairs=Repairs(
            (
                Damage(len(opening()), 1, 0, DamageReason.UNREADABLE),
                Damage(end, 2, 1, DamageReason.TORN),
            ),
            2,
        ),
    )
