"""The journal of one session, in the hands of the one host that writes it.

What is decided counts at once for whatever is decided next, and is told to nobody before it is on
disk. If it cannot get there, it was never decided.
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
from holdfast.host.journal_tail import Line, Tail, pages
from holdfast.host.model import AnyRecord, Happened
from holdfast.host.session import Session, fold
from holdfast.runners.model import Remembered
from holdfast.world import (
    Disk,
    GroupCommit,
    Journal,
    JournalEntry,
    RecordSchema,
    Runner,
    Schema,
    SystemDisk,
    encode_record,
    read_journal,
)

JOURNAL: Final = "journal.jsonl"  # in the directory of a session
SCHEMA: Final[RecordSchema] = Schema("session", 1, ())

_LOSSES: Final = frozenset({"unreadable", "missing"})
_REMEMBERED: Final = b'{"type":"remembered"'
_decoder: Final = msgspec.json.Decoder[AnyRecord](AnyRecord)


@dataclass(frozen=True, slots=True, eq=False)
class _Writing:
    """What was decided, when, and where the session stood before and after."""

    records: tuple[AnyRecord, ...]
    since: float
    before: Session
    after: Session


class Book:
    """Where a session stands, and all that was written down of it."""

    def __init__(self, journal: Journal, run: Runner) -> None:
        self._journal = journal
        self._commit = GroupCommit(journal, run=run)
        self._tail = Tail()
        self._stirred = anyio.Event()
        self.session = self._kept = fold(Session(), map(_read, journal.read()))
        self._writing: list[_Writing] = []  # on their way to the disk
        self._arrived: dict[int, _Writing] = {}  # there, by the number of the first record
        self._taken = journal.seq  # up to which record `_kept` goes

    @classmethod
    def open(cls, disk: Disk, path: Path, *, name: str, run: Runner) -> Book:
        """Become the one writer of a session's journal, and read where the session stands."""
        return cls(Journal.open(disk, path, schema=SCHEMA, log=name), run)

    @property
    def seq(self) -> int:
        """The number of the last record that is on disk."""
        return self._journal.seq

    @property
    def kept(self) -> Session:
        """Where the session stands by what is on disk: what may be acted upon."""
        return self._kept

    @property
    def damage(self) -> JournalRepaired | None:
        """What was lost from it before it was opened; None if nothing was.

        A last record that was never finished is no loss: nobody was told that it is there.
        """
        repairs = self._journal.repairs
        lost = [each for each in repairs.damage if each.reason in _LOSSES]
        if not lost or not repairs.set_aside:  # a gap that an earlier host has reported
            return None
        aside = [str(self._journal.path.parent / name) for name in repairs.set_aside]
        return JournalRepaired(count=len(lost), set_aside=", ".join(aside))

    @property
    def writing_for(self) -> float:
        """For how many seconds the oldest record has been on its way to the disk."""
        return anyio.current_time() - self._writing[0].since if self._writing else 0.0

    def remembered(self) -> Iterator[Remembered]:
        """All that the runner has had kept for itself, in order, as far as it is on disk."""
        for entry in self._journal.read():
            if _REMEMBERED in entry.data:  # most of the others need not be read for that
                match _read(entry):
                    case Happened(event=Remembered() as remembered):
                        yield remembered
                    case _:
                        pass

    async def write(self, *records: AnyRecord) -> int:
        """Write down what was decided, all or nothing; return the number of the last record.

        What is on its way to the disk cannot be called back: who is cancelled waits for its end.
        """
        before = self.session
        self.session = fold(before, records)
        writing = _Writing(records, anyio.current_time(), before, self.session)
        self._writing.append(writing)
        last = 0
        with anyio.CancelScope(shield=True):
            last = await self._arrival(writing)
            while self._taken < last:  # those before have arrived, too
                await self.stirred()
        return last

    async def _arrival(self, writing: _Writing) -> int:
        """Wait until it is on disk, and take it up; what is refused was never decided."""
        try:
            cursor = await self._commit.append(*writing.records)
        except Failure:
            self._writing.remove(writing)
            others = (each for other in self._writing for each in other.records)
            self.session = fold(self._kept, others)
            self.stir()
            raise
        self._arrived[cursor.sequence - len(writing.records) + 1] = writing
        self._take_up()
        return cursor.sequence

    def _take_up(self) -> None:
        """Take what is on disk up in its order there, whoever was told first."""
        while (first := self._taken + 1) in self._arrived:
            writing = self._arrived.pop(first)
            self._writing.remove(writing)
            is_known = self._kept is writing.before  # nearly always
            self._kept = writing.after if is_known else fold(self._kept, writing.records)
            self._taken += len(writing.records)
            self._tail.add(first, map(msgspec.json.encode, writing.records))
        if not self._writing:
            self.session = self._kept
        self.stir()

    async def follow(self, after: int) -> AsyncGenerator[list[Line]]:
        """Yield everything after a number, in pages: first what there is, then what comes."""
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
                await self.stirred()

    def stir(self) -> None:
        """Wake whoever waits for something to have changed."""
        self._stirred.set()
        self._stirred = anyio.Event()

    async def stirred(self) -> None:
        """Wait until something has changed."""
        await self._stirred.wait()

    def close(self) -> None:
        """Let another host have it."""
        self._journal.close()


def read_book(path: Path, *, after: int = 0) -> Iterator[tuple[int, AnyRecord]]:
    """Everything that is written down of a session, with its number, whoever writes meanwhile."""
    for entry in read_journal(SystemDisk(), path, schema=SCHEMA, after=after):
        yield entry.seq, _read(entry)


def _read(entry: JournalEntry) -> AnyRecord:
    record: AnyRecord = _decoder.decode(entry.data)
    return record


# Write a whole journal at once, for a conversation that was held elsewhere.


def compose_book(directory: Path, records: Iterable[AnyRecord], *, name: str) -> bool:
    """Make these the first records of a session, all or none; say whether it had none before."""
    journal = Journal.open(SystemDisk(), directory / JOURNAL, schema=SCHEMA, log=name)
    try:
        if journal.seq:
            return False
        journal.append([encode_record(record) for record in records])
    finally:
        journal.close()
    return True
