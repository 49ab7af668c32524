"""What is written down of a session is on disk before anybody is told."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import msgspec
import pytest

from holdfast.host.journal import SessionJournal
from holdfast.host.journal_tail import PAGE_BYTES, JournalLine
from holdfast.host.model import (
    AttemptStarted,
    EventRecorded,
    PromptQueued,
    SessionOpened,
    TurnBegun,
)
from holdfast.host.session import SessionPhase
from holdfast.runners.model import MemoryRecorded, ToolStarted
from holdfast.world.failures import DiskFull
from holdfast.world.testing import CrashingDisk, DiskFaults, run_inline

pytestmark = pytest.mark.anyio
OPENED = (SessionOpened("s1", "/p", "d1", "rehearsal", 1), AttemptStarted(1, 1))
PATH = Path("/state/journal.jsonl")
WRITE = 2  # an append looks at the file, then writes


@pytest.fixture
def disk() -> CrashingDisk:
    return CrashingDisk()


def book_on(disk: CrashingDisk) -> SessionJournal:
    return SessionJournal.open(disk, PATH, name="s1", run=run_inline)


async def pages(book: SessionJournal, after: int, until: int) -> list[JournalLine]:
    found: list[JournalLine] = []
    with anyio.fail_after(60):
        async for page in book.follow(after):
            found += page
            if found[-1].seq >= until:
                return found
    raise AssertionError("it goes on for ever")


async def test_the_next_host_stands_where_the_last_one_stood(disk: CrashingDisk) -> None:
    book = book_on(disk)
    await book.write(*OPENED)
    assert await book.write(PromptQueued("c1", 1, "go", 2), TurnBegun(1, 3)) == 4
    before = book.session
    book.close()

    again = book_on(disk)

    assert (again.session, again.session.phase, again.seq) == (before, SessionPhase.RUNNING, 4)


async def test_what_a_runner_keeps_for_itself_is_read_back(disk: CrashingDisk) -> None:
    book = book_on(disk)
    memos = [MemoryRecorded(msgspec.Raw(b'{"n":%d}' % number)) for number in range(3)]
    look_alike = ToolStarted("1", "t", "T", {"type": "remembered", "memo": 1})
    await book.write(*OPENED, EventRecorded(1, memos[0]), EventRecorded(1, look_alike))
    await book.write(EventRecorded(1, memos[1]), EventRecorded(2, memos[2]))

    assert list(book.remembered()) == memos
    book.close()
    assert list(book_on(disk).remembered()) == memos


async def test_what_was_and_what_comes_follow_one_another(disk: CrashingDisk) -> None:
    old = book_on(disk)
    await old.write(*OPENED)
    old.close()
    book = book_on(disk)
    told: list[JournalLine] = []

    async def listen() -> None:
        told.extend(await pages(book, 0, until=5))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        await book.write(PromptQueued("c1", 1, "go", 2))
        await book.write(TurnBegun(1, 3), AttemptStarted(2, 3))

    assert [line.seq for line in told] == [1, 2, 3, 4, 5]
    assert await pages(book, 3, until=5) == told[3:]


async def test_a_slow_reader_reads_from_the_disk(disk: CrashingDisk) -> None:
    book = book_on(disk)
    await book.write(*OPENED)
    long = "x" * PAGE_BYTES
    reader = book.follow(0)
    first = await anext(reader)
    for number in range(40):
        await book.write(PromptQueued(f"c{number}", number, long, 2))

    with anyio.fail_after(60):
        seqs = [line.seq for line in first]
        while seqs[-1] < 42:
            seqs += [line.seq for line in await anext(reader)]

    assert seqs == list(range(1, 43))


async def test_what_the_disk_refused_was_never_decided(disk: CrashingDisk) -> None:
    book = book_on(disk)
    await book.write(*OPENED)
    before = book.session
    disk.trouble = DiskFaults(errors={disk.operations + WRITE: errno.ENOSPC})

    with pytest.raises(DiskFull):
        await book.write(PromptQueued("c1", 1, "go", 2))
    assert book.session == before
    disk.trouble = DiskFaults()

    assert await book.write(PromptQueued("c1", 1, "go", 2)) == 3


async def test_what_was_decided_upon_something_refused_stands_without_it(
    disk: CrashingDisk,
) -> None:
    book = book_on(disk)
    await book.write(*OPENED)
    refused: list[DiskFull] = []

    async def refuse() -> None:
        try:
            await book.write(PromptQueued("c1", 1, "go", 2))
        except DiskFull as failure:
            refused.append(failure)

    disk.trouble = DiskFaults(errors={disk.operations + WRITE: errno.ENOSPC})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(refuse)
        tasks.start_soon(book.write, PromptQueued("c2", 2, "also", 2))

    assert len(refused) == 1
    assert book.session is book.kept  # nothing is on its way
    assert set(book.kept.commands) == {"c2"}
    book.close()
    assert book_on(disk).session == book.kept
