"""The journal of one session, with the host as its only writer.

There are two states. `session` includes records that are still being written: the next decision is
based on it. `kept` includes only durable records: what leaves the process is based on it.

    decide ──▶ write() ──▶ session ──group commit──▶ kept ──▶ followers

A write that fails is rolled back: `session` is folded again from `kept` and the writes that are
still pending. Group commit may complete writes out of order of their tasks, so `_take_up` applies
them by sequence number.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import msgspec

from holdfast.failures import Failure
from holdfast.host.failures import JournalRepaired
from holdfast.host.journal_tail import JournalLine, JournalTail, pages
from holdfast.host.model import AnyRecord, EventRecorded
from holdfast.host.session import SessionState, fold
from holdfast.runners.model import MemoryRecorded
from holdfast.world import (
    BlockingRunner,
    Disk,
    GroupCommit,
    Journal,
    JournalEntry,
    RecordSchema,
    Schema,
    SystemDisk,
    encode_record,
    read_journal,
)

JOURNAL: Final = "journal.jsonl"  # file name in the session's directory
SCHEMA: Final[RecordSchema] = Schema("session", 1, ())

_LOSSES: Final = frozenset({"unreadable", "missing"})
_REMEMBERED: Final = b'{"type":"remembered"'
_decoder: Final = msgspec.json.Decoder[AnyRecord](AnyRecord)


@dataclass(frozen=True, slots=True, eq=False)
class _PendingWrite:
    """A write in progress, with the state before and after it."""

    records: tuple[AnyRecord, ...]
    since: float
    before: SessionState
    after: SessionState


class SessionJournal:
    """State and records of a session."""

    def __init__(self, journal: Journal, run: BlockingRunner) -> None:
        self._journal = journal
        self._commit = GroupCommit(journal, run=run)
        self._tail = JournalTail()
        self._changed = anyio.Event()
        self.session = self._kept = fold(SessionState(), map(_read, journal.read()))
        self._writing: list[_PendingWrite] = []  # not durable yet, oldest first
        # Durable but not applied, by first sequence number.
        self._arrived: dict[int, _PendingWrite] = {}
        self._taken = journal.seq  # sequence number up to which `_kept` is applied

    @classmethod
    def open(cls, disk: Disk, path: Path, *, name: str, run: BlockingRunner) -> SessionJournal:
        """Lock the journal as its only writer, and read the state of the session."""
        return cls(Journal.open(disk, path, schema=SCHEMA, log=name), run)

    @property
    def seq(self) -> int:
        """Sequence number of the last durable record."""
        return self._journal.seq

    @property
    def kept(self) -> SessionState:
        """State of the session by durable records: the only one to act upon."""
        return self._kept

    @property
    def damage(self) -> JournalRepaired | None:
        """What was lost before the journal was opened; None if nothing was.

        An incomplete last record is not a loss: it was never acknowledged.
        """
        repairs = self._journal.repairs
        lost = [each for each in repairs.damage if each.reason in _LOSSES]
        if not lost or not repairs.set_aside:  # an earlier host has already reported the gap
            return None
        aside = [str(self._journal.path.parent / name) for name in repairs.set_aside]
        return JournalRepaired(count=len(lost), set_aside=", ".join(aside))

    @property
    def writing_for(self) -> float:
        """Seconds for which the oldest pending write has been waiting for the disk."""
        return anyio.current_time() - self._writing[0].since if self._writing else 0.0

    def remembered(self) -> Iterator[MemoryRecorded]:
        """Yield the durable records that the runner stored for itself, in order."""
        for entry in self._journal.read():
            # A cheap test on the bytes: most records need not be decoded.
            if _REMEMBERED in entry.data:
                match _read(entry):
                    case EventRecorded(event=MemoryRecorded() as remembered):
                        yield remembered
                    case _:
                        pass

    async def write(self, *records: AnyRecord) -> int:
        """Append records, all or none; return the last sequence number when they are durable.

        Cancellation is deferred until the write has ended, since it cannot be undone.
        """
        before = self.session
        self.session = fold(before, records)
        writing = _PendingWrite(records, anyio.current_time(), before, self.session)
        self._writing.append(writing)
        last = 0
        with anyio.CancelScope(shield=True):
            last = await self._arrival(writing)
            while self._taken < last:  # earlier writes are durable, but may not be applied yet
                await self.changed()
        return last

    async def _arrival(self, writing: _PendingWrite) -> int:
        """Wait for the commit, and apply it; on failure roll back `session`."""
        try:
            cursor = await self._commit.append(*writing.records)
        except Failure:
            self._writing.remove(writing)
            others = (each for other in self._writing for each in other.records)
            self.session = fold(self._kept, others)
            self.notify()
            raise
        self._arrived[cursor.sequence - len(writing.records) + 1] = writing
        self._take_up()
        return cursor.sequence

    def _take_up(self) -> None:
        """Apply durable writes by sequence number, in whatever order their tasks woke up."""
        while (first := self._taken + 1) in self._arrived:
            writing = self._arrived.pop(first)
            self._writing.remove(writing)
            # Nearly always, since most writes do not overlap: then there is nothing to fold again.
            is_known = self._kept is writing.before
            self._kept = writing.after if is_known else fold(self._kept, writing.records)
            self._taken += len(writing.records)
            self._tail.add(first, map(msgspec.json.encode, writing.records))
        if not self._writing:
            self.session = self._kept
        self.notify()

    async def follow(self, after: int) -> AsyncGenerator[list[JournalLine]]:
        """Yield records after a sequence number in pages: first existing ones, then new ones."""
        while True:
            page = self._tail.page(after)
            if page:
                yield page
                after = page[-1].seq
            elif page is None and self._journal.seq > after:
                for old in pages(self._journal.read(after=after)):
                    yield old
                    after = old[-1].seq
                    await anyio.lowlevel.checkpoint()
            else:
                await self.changed()

    def notify(self) -> None:
        """Wake all tasks that wait for a change."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()

    def close(self) -> None:
        """Release the lock."""
        self._journal.close()


def read_session_journal(path: Path, *, after: int = 0) -> Iterator[tuple[int, AnyRecord]]:
    """Yield all records with their sequence numbers; safe while a host is writing."""
    for entry in read_journal(SystemDisk(), path, schema=SCHEMA, after=after):
        yield entry.seq, _read(entry)


def _read(entry: JournalEntry) -> AnyRecord:
    record: AnyRecord = _decoder.decode(entry.data)
    return record


# Journals of imported conversations.


def compose_journal(directory: Path, records: Iterable[AnyRecord], *, name: str) -> bool:
    """Write the first records of a session, all or none; False if it already has records."""
    journal = Journal.open(SystemDisk(), directory / JOURNAL, schema=SCHEMA, log=name)
    try:
        if journal.seq:
            return False
        journal.append([encode_record(record) for record in records])
    finally:
        journal.close()
    return True
