"""The journal of one session, in the hands of the one host that writes it.

What is decided counts at once for whatever is decided next, and is told to nobody before it is on
disk. If it cannot get there, it was never decided.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import msgspec

from holdfast.failures import Failure
from holdfast.host.core.session import Session, fold
from holdfast.host.core.tail import Line, Tail, paged
from holdfast.host.model import AnyRecord
from holdfast.world import (
    Disk,
    GroupCommit,
    Journal,
    JournalEntry,
    RecordSchema,
    Runner,
    Schema,
    SystemDisk,
    read_journal,
)

SCHEMA: Final[RecordSchema] = Schema("session", 1, ())

_decoder: Final = msgspec.json.Decoder[AnyRecord](AnyRecord)


class Book:
    """Where a session stands, and all that was written down of it."""

    def __init__(self, journal: Journal, run: Runner) -> None:
        self._journal = journal
        self._commit = GroupCommit(journal, run=run)
        self._tail = Tail()
        self._stirred = anyio.Event()
        self.session = self._kept = fold(Session(), map(_read, journal.read()))
        self._refusals = 0
        self._writing: list[float] = []  # since when, of each that is not on disk yet

    @classmethod
    def open(cls, disk: Disk, path: Path, *, name: str, run: Runner) -> Book:
        """Become the one writer of a session's journal, and read where the session stands."""
        return cls(Journal.open(disk, path, schema=SCHEMA, log=name), run)

    @property
    def seq(self) -> int:
        """The number of the last record that is on disk."""
        return self._journal.seq

    @property
    def is_repaired(self) -> bool:
        """Whether something in it was damaged when it was opened."""
        return bool(self._journal.repairs.set_aside)

    @property
    def writing_for(self) -> float:
        """For how many seconds the oldest record has been on its way to the disk."""
        return anyio.current_time() - self._writing[0] if self._writing else 0.0

    async def write(self, *records: AnyRecord) -> int:
        """Write down what was decided, all or nothing; return the number of the last record."""
        self.session = fold(self.session, records)
        refusals = self._refusals
        self._writing.append(anyio.current_time())
        try:
            cursor = await self._commit.append(*records)
        except Failure:
            self._refusals += 1
            self.session = self._kept
            raise
        finally:
            self._writing.pop(0)
        self._kept = fold(self._kept, records)
        if refusals != self._refusals:  # what was refused meanwhile took this away, too
            self.session = fold(self.session, records)
        first = cursor.sequence - len(records) + 1
        self._tail.add(first, map(msgspec.json.encode, records))
        self.stir()
        return cursor.sequence

    async def follow(self, after: int) -> AsyncGenerator[list[Line]]:
        """Yield everything after a number, in pages: first what there is, then what comes."""
        while True:
            page = self._tail.page(after)
            if page:
                yield page
                after = page[-1].seq
            elif page is None and self._journal.seq > after:
                for old in _pages(self._journal.read(after=after)):
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


def _pages(entries: Iterator[JournalEntry]) -> Iterator[list[Line]]:
    lines = (Line(entry.seq, entry.data) for entry in entries)
    while page := list(paged(lines)):
        yield page
