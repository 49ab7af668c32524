"""What the journal acknowledged is there, after every failure, crash and kind of damage."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.failures import Failure
from holdfast.world.failures import (
    DiskFull,
    DiskIo,
    JournalFenced,
    JournalHeld,
    StoreForeign,
    StoreReadOnly,
    StoreTooNew,
    StoreTooOld,
)
from holdfast.world.journal import Journal
from holdfast.world.journal_format import (
    Damage,
    DamageReason,
    JournalRecord,
    encode_record,
    write_line,
)
from holdfast.world.journal_reader import read_journal
from holdfast.world.memory import CrashingDisk, DiskFaults, SimulatedPowerLoss
from holdfast.world.ports import Disk
from holdfast.world.schema import Schema

PATH = Path("/d/log")
SCHEMA: Schema[Callable[[object], object]] = Schema("notes", 1)
Entries = list[tuple[int, bytes]]


def opened(
    disk: Disk, path: Path = PATH, schema: Schema[Callable[[object], object]] = SCHEMA
) -> Journal:
    return Journal.open(disk, path, schema=schema, log="log1")


def append(journal: Journal, *values: object) -> int:
    return journal.append([encode_record(value) for value in values])


def entries(journal: Journal, after: int = 0) -> Entries:
    return [(entry.seq, entry.data) for entry in journal.read(after=after)]


def text(disk: Disk, path: Path = PATH) -> bytes:
    return disk.open(path).read(1 << 20, at=0)


def put(disk: Disk, content: bytes, path: Path = PATH) -> None:
    file = disk.create(path, mode=0o600)
    file.append(content)
    file.sync()
    file.close()


ABC = [(1, b'"a"'), (2, b'"b"'), (3, b'"c"')]


def journal_of_three() -> bytes:
    disk = CrashingDisk()
    append(opened(disk), "a", "b", "c")
    return text(disk)


THREE = journal_of_three()
LINES = THREE.splitlines(keepends=True)


def test_records_are_numbered_and_read_back() -> None:
    journal = opened(CrashingDisk())

    assert append(journal, "a") == 1
    assert append(journal, "b", "c") == 2
    assert journal.seq == 3
    assert entries(journal) == ABC
    assert entries(journal, after=2) == ABC[2:]
    assert entries(journal, after=3) == []


def test_a_reopened_journal_goes_on() -> None:
    disk = CrashingDisk()
    first = opened(disk)
    append(first, "a")
    first.close()
    first.close()
    second = opened(disk)

    assert append(second, "b", "c") == 2
    assert entries(second) == ABC
    assert (first.epoch, second.epoch) == (1, 2)


def test_with_a_bookmark_only_what_follows_it_is_read() -> None:
    disk = CrashingDisk()
    first = opened(disk)
    append(first, 1, 2)
    since = first.bookmark
    append(first, 3)
    first.close()
    content = text(disk).replace(b'"record":2', b'"record":?')
    file = disk.open_to_write(PATH)
    file.truncate(0)
    file.append(content)

    later = Journal.open(disk, PATH, schema=SCHEMA, log="log1", since=since)
    assert (later.seq, later.epoch, later.repairs.count) == (3, 2, 0)
    assert append(later, 4) == 4
    later.close()
    assert opened(disk).repairs.count == 1


NINTH, SECOND = (write_line(JournalRecord(seq, 1, 1, b"9")) for seq in (9, 2))


@pytest.mark.parametrize("follows", [b"junk", b"\0" * 8, NINTH, SECOND])
def test_a_bookmark_that_leads_astray_is_not_followed(follows: bytes) -> None:
    disk = CrashingDisk()
    first = opened(disk)
    append(first, 1, 2)
    since = first.bookmark
    first.close()
    file = disk.open_to_write(PATH)
    file.append(follows)

    followed = Journal.open(disk, PATH, schema=SCHEMA, log="log1", since=since)
    assert followed.repairs.count == 1
    assert entries(followed)[:2] == [(1, b"1"), (2, b"2")]


def test_a_bookmark_of_another_file_is_not_followed() -> None:
    disk, other = CrashingDisk(), CrashingDisk()
    first = opened(other)
    append(first, *range(9))
    opened(disk).close()

    assert Journal.open(disk, PATH, schema=SCHEMA, log="log1", since=first.bookmark).seq == 0


def opened_with_a_batch(disk: CrashingDisk, *, is_known: bool, full_at: int = 0) -> Journal:
    """A journal of one record that is opened again to append two; the disk is full at a step."""
    first = opened(disk)
    append(first, "a")
    since = first.bookmark if is_known else None
    first.close()
    disk.trouble.errors[disk.operations + full_at] = errno.ENOSPC
    batch = [encode_record("b"), encode_record("c")]
    return Journal.open(disk, PATH, schema=SCHEMA, log="log1", since=since, batch=batch)


@pytest.mark.parametrize("is_known", [True, False])
def test_what_comes_with_the_opening_is_kept_with_it(is_known: bool) -> None:
    disk = CrashingDisk()
    journal = opened_with_a_batch(disk, is_known=is_known)

    assert (journal.seq, entries(journal)) == (3, ABC)
    for seed in range(50):
        assert entries(opened(disk.crash(seed))) == ABC
    assert append(journal, "d") == 4


@pytest.mark.parametrize("is_known", [True, False])
def test_all_that_comes_with_an_opening_is_there_or_nothing_is(is_known: bool) -> None:
    disk = CrashingDisk()
    opened_with_a_batch(disk, is_known=is_known).close()
    for number in range(1, disk.operations):
        disk, is_done = CrashingDisk(), False
        with suppress(Failure):
            opened_with_a_batch(disk, is_known=is_known, full_at=number).close()
            is_done = True
        disk.trouble.errors.clear()
        assert entries(opened(disk)) in ([ABC] if is_done else [ABC[:1], ABC])


def test_a_journal_that_refuses_has_no_bookmark() -> None:
    disk = CrashingDisk()
    journal = opened(disk)
    disk.rename(PATH, PATH.with_name("away"))
    with pytest.raises(JournalFenced):
        append(journal, 1)
    assert journal.bookmark is None


def test_one_line_tells_what_the_log_is() -> None:
    assert LINES[0] == write_line(
        JournalRecord(
            0,
            1,
            1,
            b'{"format":1,"log":"log1","schema":"notes",'
            b'"repairs":{"damage":[],"count":0,"set_aside":[]}}',
            is_opening=True,
        )
    )


def test_there_is_one_writer() -> None:
    disk = CrashingDisk()
    first = opened(disk)
    with pytest.raises(JournalHeld) as raised:
        opened(disk)
    assert raised.value == JournalHeld(path=str(PATH))
    first.close()

    assert opened(disk).epoch == 2


# What is damaged.


def cut(offset: int, length: int, after: int, reason: str) -> Damage:
    return Damage(offset, length, after, DamageReason(reason))


HEAD = len(LINES[0])
BC = len(LINES[1])


@pytest.mark.parametrize(
    ("found", "kept", "damage", "aside"),
    [
        (THREE[:-9], ABC[:2], cut(len(THREE) - BC, BC - 9, 2, "torn"), LINES[3][:-9]),
        (THREE + bytes(70), ABC, cut(len(THREE), 70, 3, "zeros"), bytes(70)),
        (THREE + LINES[3], ABC, cut(len(THREE), BC, 3, "duplicate"), LINES[3]),
        (b"junk", [], cut(0, 4, 0, "torn"), b"junk"),
        (
            THREE.replace(b'"b"', b'"x"'),
            [ABC[0], ABC[2]],
            cut(HEAD + BC, BC, 1, "unreadable"),
            THREE.replace(b'"b"', b'"x"'),
        ),
        (
            bytes(9) + THREE,
            ABC,
            cut(0, 9, 0, "zeros"),
            bytes(9) + THREE,
        ),
    ],
    ids=["torn tail", "zero tail", "duplicated tail", "junk alone", "flipped byte", "zero head"],
)
def test_damage_is_set_aside_and_reported(
    found: bytes, kept: Entries, damage: Damage, aside: bytes
) -> None:
    disk = CrashingDisk()
    put(disk, found)
    journal = opened(disk)

    assert entries(journal) == kept
    assert journal.repairs.damage == (damage,)
    assert journal.repairs.count == 1
    assert journal.repairs.set_aside == ("log.damaged-1",)
    assert text(disk, PATH.with_name("log.damaged-1")) == aside
    assert damage.reason.value.encode() in text(disk).splitlines()[-1]
    first = append(journal, "new")
    assert entries(journal)[-1] == (first, b'"new"')
    journal.close()
    again = opened(disk)
    assert again.repairs.set_aside == ()
    assert entries(again) == [*kept, (first, b'"new"')]


@pytest.mark.parametrize(
    "found", [b"", THREE[:-1], THREE + b"\n", THREE.replace(b"}\n{", b"}{")], ids=repr
)
def test_what_costs_no_record_is_no_damage(found: bytes) -> None:
    disk = CrashingDisk()
    put(disk, found)
    journal = opened(disk)
    append(journal, "new")

    assert journal.repairs.count == 0
    assert disk.names(PATH.parent) == ["log", "log.lock"]
    assert text(disk).count(b'\n{ "seq":') >= 1
    assert entries(journal)[-1][1] == b'"new"'


def test_a_line_without_an_end_is_ended_before_the_next() -> None:
    disk = CrashingDisk()
    put(disk, THREE[:-1])
    opened(disk)

    assert text(disk).startswith(THREE + b"{ ")


def test_a_missing_line_is_reported_and_changes_nothing() -> None:
    disk = CrashingDisk()
    put(disk, LINES[0] + LINES[1] + LINES[3])
    journal = opened(disk)

    assert journal.repairs.damage == (cut(HEAD + BC, 0, 1, "missing"),)
    assert journal.repairs.set_aside == ()
    assert entries(journal) == [ABC[0], ABC[2]]


def test_endless_damage_makes_a_short_report() -> None:
    disk = CrashingDisk()
    put(disk, THREE + LINES[3] * 1000)
    journal = opened(disk)

    assert journal.repairs.count == 1000
    assert len(journal.repairs.damage) == 100


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(THREE)), st.integers(0, 50), st.binary(max_size=20))
def test_it_opens_anything(at: int, length: int, junk: bytes) -> None:
    disk = CrashingDisk()
    put(disk, THREE[:at] + junk + THREE[at + length :])
    journal = opened(disk)
    kept = entries(journal)
    first = append(journal, "new")

    assert set(kept) <= set(ABC)
    assert entries(journal) == [*kept, (first, b'"new"')]


# What is too new, too old or somebody else's.


def upgrade(value: object) -> object:
    return {"text": value}


def test_an_older_journal_is_upgraded_as_it_is_read() -> None:
    disk = CrashingDisk()
    old = opened(disk)
    append(old, "a")
    old.close()
    new = opened(disk, schema=Schema("notes", 2, (upgrade,)))
    append(new, {"text": "b"})

    assert entries(new) == [(1, b'{"text":"a"}'), (2, b'{"text":"b"}')]


@pytest.mark.parametrize(
    ("schema", "failure"),
    [
        (Schema("notes", 2), StoreTooOld(path=str(PATH), schema="notes", found=1, oldest=2)),
        (Schema("notes", 0), StoreTooNew(path=str(PATH), schema="notes", found=1, newest=0)),
        (Schema("tunes", 1), StoreForeign(path=str(PATH), expected="tunes", found="notes")),
    ],
)
def test_what_we_cannot_understand_is_left_alone(
    schema: Schema[Callable[[object], object]], failure: Failure
) -> None:
    disk = CrashingDisk()
    put(disk, THREE + b"torn")
    for attempt in (
        lambda: opened(disk, schema=schema),
        lambda: list(read_journal(disk, PATH, schema=schema)),
    ):
        with pytest.raises(type(failure)) as raised:
            attempt()
        assert raised.value == failure
    assert text(disk) == THREE + b"torn"
    assert opened(disk).seq == 3


def test_another_log_is_left_alone() -> None:
    disk = CrashingDisk()
    put(disk, THREE + b"torn")
    with pytest.raises(StoreForeign) as raised:
        Journal.open(disk, PATH, schema=SCHEMA, log="log2")

    assert raised.value == StoreForeign(path=str(PATH), expected="log2", found="log1")
    assert text(disk) == THREE + b"torn"


# What fails while it is open.


def with_trouble(find: Callable[[CrashingDisk], DiskFaults]) -> tuple[CrashingDisk, Journal]:
    disk = CrashingDisk()
    journal = opened(disk)
    append(journal, "a")
    disk.trouble = find(disk)
    return disk, journal


WRITE, SYNC = 2, 3  # an append looks at the file, writes, syncs and looks again


def test_a_full_disk_costs_nothing_and_it_goes_on_when_there_is_room() -> None:
    _, journal = with_trouble(
        lambda disk: DiskFaults(errors={disk.operations + WRITE: errno.ENOSPC})
    )
    with pytest.raises(DiskFull):
        append(journal, "lost", "lost")

    assert append(journal, "b") == 2
    assert entries(journal) == ABC[:2]


def test_half_a_batch_is_taken_back_for_good() -> None:
    disk, journal = with_trouble(lambda _: DiskFaults())
    before = text(disk)
    disk.trouble = DiskFaults(
        errors={disk.operations + WRITE + 1: errno.ENOSPC}, short_writes={disk.operations + WRITE}
    )
    with pytest.raises(DiskFull):
        append(journal, "b", "c", "d")

    assert {text(disk.crash(seed)) for seed in range(50)} == {before}
    assert append(journal, "b", "c") == 2
    assert entries(journal) == ABC


def test_a_short_write_is_completed() -> None:
    _, journal = with_trouble(lambda disk: DiskFaults(short_writes={disk.operations + WRITE}))

    assert append(journal, "b", "c") == 2
    assert entries(journal) == ABC


@pytest.mark.parametrize(
    "errors",
    [{SYNC: errno.EIO}, {WRITE: errno.ENOSPC, WRITE + 1: errno.EIO}, {SYNC: errno.ENOSPC}],
    ids=["sync fails", "taking back fails", "sync has no room"],
)
def test_once_the_disk_is_unknown_nothing_is_written_and_reads_go_on(
    errors: dict[int, int],
) -> None:
    _, journal = with_trouble(
        lambda disk: DiskFaults(
            errors={disk.operations + at: number for at, number in errors.items()}
        )
    )
    with pytest.raises((DiskIo, DiskFull)):
        append(journal, "b")
    for _ in range(2):
        with pytest.raises(StoreReadOnly) as raised:
            append(journal, "c")
    cause = "DISK_IO" if errno.EIO in errors.values() else "DISK_FULL"

    assert raised.value == StoreReadOnly(path=str(PATH), cause=cause)
    assert entries(journal) == ABC[:1]


def remove(disk: CrashingDisk) -> None:
    disk.unlink(PATH)


def exchange(disk: CrashingDisk) -> None:
    put(disk, text(disk), PATH.with_name("copy"))
    disk.rename(PATH.with_name("copy"), PATH)


def take_over(disk: CrashingDisk) -> None:
    disk.unlink(PATH.with_name("log.lock"))
    append(opened(disk), "b", "c")


@pytest.mark.parametrize("happens", [remove, exchange, take_over])
def test_a_writer_that_was_replaced_writes_no_more(happens: Callable[[CrashingDisk], None]) -> None:
    disk, journal = with_trouble(lambda _: DiskFaults())
    happens(disk)
    for _ in range(2):
        with pytest.raises(JournalFenced) as raised:
            append(journal, "late")

    assert raised.value == JournalFenced(path=str(PATH), epoch=1)
    if happens is take_over:
        assert text(disk).count(b"late") == 0
        journal.close()


def test_what_a_replaced_writer_slipped_in_is_not_read() -> None:
    disk = CrashingDisk()
    first = opened(disk)
    append(first, "a")
    take_over(disk)
    disk.open_to_write(PATH).append(write_line(JournalRecord(2, 1, 1, b'"late"')))

    found = read_journal(disk, PATH, schema=SCHEMA)
    assert [(entry.seq, entry.data) for entry in found] == ABC


# What a crash leaves.

batches = st.lists(st.lists(st.text(max_size=8), min_size=1, max_size=3), max_size=6)


class Unsynced:
    """A disk that says it has synced and has not: what a missing call would do."""

    def __init__(self, disk: object, *, skips: str) -> None:
        self.disk = disk
        self.skips = skips

    def __getattr__(self, name: str) -> object:
        found = getattr(self.disk, name)
        if name == self.skips:
            return lambda *_: None
        if name in {"create", "open", "open_to_write"}:
            return lambda *args, **named: Unsynced(found(*args, **named), skips=self.skips)
        return found


def write_until_dark(disk: Disk, work: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """Append until the power fails; return what was acknowledged and all that was asked for."""
    acknowledged: list[str] = []
    asked: list[str] = []
    try:
        journal = opened(disk)
        for number, batch in enumerate(work):
            asked += batch
            append(journal, *batch)
            acknowledged += batch
            if number % 3 == 2:
                journal.close()
                journal = opened(disk)
    except SimulatedPowerLoss:
        pass
    return acknowledged, asked


def survivors(disk: CrashingDisk) -> list[str]:
    return [msgspec.json.decode(entry.data, type=str) for entry in opened(disk).read()]


@settings(max_examples=300, deadline=None)
@given(batches, st.integers(1, 120), st.lists(st.integers(), min_size=1, max_size=4))
@example([["", "000"]], 16, [244324394735])  # a hole in the first record of two
def test_no_crash_loses_what_was_acknowledged_or_invents_anything(
    work: list[list[str]], dark_at: int, seeds: list[int]
) -> None:
    disk = CrashingDisk(DiskFaults(power_lost=dark_at))
    acknowledged, asked = write_until_dark(disk, work)
    for seed in seeds:
        disk = disk.crash(seed)  # and again, right after it was repaired
        found = survivors(disk)

        assert found[: len(acknowledged)] == acknowledged
        # Of what was never acknowledged any part may be damaged; what follows it is kept.
        rest = iter(asked)
        assert all(record in rest for record in found)
        asked, acknowledged = found, found


@settings(max_examples=200, deadline=None)
@given(
    batches,
    st.dictionaries(
        st.integers(1, 60), st.sampled_from([errno.ENOSPC, errno.EIO, errno.EROFS]), max_size=3
    ),
    st.sets(st.integers(1, 60), max_size=5),
    st.integers(),
)
def test_no_error_loses_what_was_acknowledged(
    work: list[list[str]], errors: dict[int, int], short_writes: set[int], seed: int
) -> None:
    disk = CrashingDisk(DiskFaults(errors=errors, short_writes=short_writes))
    acknowledged: list[str] = []
    asked: set[str] = set()
    journal: Journal | None = None
    for batch in work:
        asked |= set(batch)
        try:
            journal = journal or opened(disk)
            append(journal, *batch)
        except Failure:
            continue
        acknowledged += batch
    if journal is not None:
        live = [entry.data for entry in journal.read()] if disk.operations > 60 else None
        assert live is None or live == [bytes(encode_record(value)) for value in acknowledged]
    found = survivors(disk.crash(seed))

    remaining = iter(found)
    assert all(value in remaining for value in acknowledged)  # all of them, in order
    assert set(found) <= asked


@pytest.mark.parametrize("skips", ["sync_data", "sync_directory"])
def test_a_missing_sync_is_caught(skips: str) -> None:
    lost = 0
    for seed in range(20):
        disk = CrashingDisk()
        acknowledged, _ = write_until_dark(Unsynced(disk, skips=skips), [["a"], ["b"]])
        lost += survivors(disk.crash(seed)) != acknowledged

    assert lost > 0
