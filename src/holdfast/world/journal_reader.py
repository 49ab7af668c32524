"""Read a journal, intact or damaged, in the words of today's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.world.failures import StoreForeign
from holdfast.world.journal_format import (
    Damage,
    Found,
    JournalRecord,
    Repairs,
    Scanner,
    read_journal_header,
)
from holdfast.world.ports import Disk, OpenFile
from holdfast.world.schema import Schema

RecordSchema = Schema[Callable[[object], object]]
"""Each upgrade is given a decoded record of one version and returns that of the next."""

_PIECE_BYTES = 1024 * 1024
_END_BYTES = 64 * 1024
_DAMAGE_LISTED_MAX = 100


class JournalEntry(msgspec.Struct, frozen=True):
    """One record, as JSON in the current version of its schema."""

    seq: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Survey:
    """What a journal holds: its last record, where that ends, and what is wrong."""

    log: str | None
    seq: int
    epoch: int
    end: int
    size: int
    is_terminated: bool
    is_damaged_inside: bool
    repairs: Repairs


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far a journal was known to be intact by the one who wrote it last, and which file it was.

    The next opening in the same process reads on from there.
    """

    device: int
    inode: int
    log: str
    seq: int
    epoch: int
    end: int


def read_journal(
    disk: Disk, path: Path, *, schema: RecordSchema, after: int = 0
) -> Iterator[JournalEntry]:
    """Yield what is intact in a journal that anyone may be writing, and change nothing.

    What a living writer has not finished is simply not there yet; what it has not synced may be
    seen here and still be lost with the power.
    """
    file = disk.open(path)
    try:
        yield from read_entries(file, path, schema=schema, after=after)
    finally:
        file.close()


def last_seq(disk: Disk, path: Path) -> int:
    """The number of the last intact record of a journal that anyone may be writing; 0 before one.

    No more of its end is read than it takes to find one.
    """
    file = disk.open(path)
    try:
        size, piece = file.status().size, _END_BYTES
        while True:
            at = max(size - piece, 0)
            scanner = Scanner(at=at)
            found = [each for each in scan(file, scanner, at=at) if isinstance(each, JournalRecord)]
            if found or at == 0:
                return scanner.seq
            piece *= 16
    finally:
        file.close()


def read_entries(
    file: OpenFile, path: Path, *, schema: RecordSchema, after: int = 0, until: int | None = None
) -> Iterator[JournalEntry]:
    """Yield the intact records after seq `after`, of the first `until` bytes of a journal."""
    reading = _Reading(schema, path)
    for found in scan(file, Scanner(), until=until):
        if isinstance(found, JournalRecord):
            reading.meet(found)
            if found.seq > after and not found.is_opening:
                yield reading.entry(found)


def survey(file: OpenFile, path: Path, *, schema: RecordSchema) -> Survey:
    """Go through a whole journal, or refuse one that is not ours to write."""
    reading, scanner = _Reading(schema, path), Scanner()
    listed: list[Damage] = []
    count, length_total, is_damaged_inside = 0, 0, False
    for found in scan(file, scanner):
        if isinstance(found, JournalRecord):
            reading.meet(found)
            is_damaged_inside = length_total > 0
        else:
            count, length_total = count + 1, length_total + found.length
            if len(listed) < _DAMAGE_LISTED_MAX:
                listed.append(found)
    return Survey(
        log=reading.log,
        seq=scanner.seq,
        epoch=scanner.epoch,
        end=scanner.end,
        size=file.status().size,
        is_terminated=scanner.is_terminated,
        repairs=Repairs(tuple(listed), count),
        is_damaged_inside=is_damaged_inside,
    )


def survey_since(
    file: OpenFile, path: Path, *, schema: RecordSchema, since: Bookmark
) -> Survey | None:
    """Do what `survey` does, from a bookmark on; None if it is of another file, or all is not well.

    What is before the bookmark is not looked at again.
    """
    status = file.status()
    if (status.device, status.inode) != (since.device, since.inode) or status.size < since.end:
        return None
    reading = _Reading(schema, path, since.log)
    scanner = Scanner(seq=since.seq, epoch=since.epoch, at=since.end)
    for found in scan(file, scanner, at=since.end):
        if not isinstance(found, JournalRecord):
            return None
        reading.meet(found)
    return Survey(
        log=reading.log,
        seq=scanner.seq,
        epoch=scanner.epoch,
        end=scanner.end,
        size=status.size,
        is_terminated=scanner.is_terminated,
        repairs=Repairs((), 0),
        is_damaged_inside=False,
    )


def scan(
    file: OpenFile, scanner: Scanner, *, at: int = 0, until: int | None = None
) -> Iterator[Found]:
    """Feed a file to a scanner, piece by piece, and yield what it finds."""
    while piece := file.read(_piece_size(at, until), at=at):
        yield from scanner.feed(piece)
        at += len(piece)
    yield from scanner.finish()


def _piece_size(at: int, until: int | None) -> int:
    return _PIECE_BYTES if until is None else min(_PIECE_BYTES, until - at)


class _Reading:
    """What has to be known about the records so far to understand the next one."""

    def __init__(self, schema: RecordSchema, path: Path, log: str | None = None) -> None:
        self.log = log
        self._schema = schema
        self._path = str(path)
        self._version: int | None = None
        self._upgrades: tuple[Callable[[object], object], ...] = ()

    def meet(self, record: JournalRecord) -> None:
        """Make sure that we may read on from this record."""
        if record.is_opening:
            opening = read_journal_header(record.data, path=self._path)
            self._schema.check_name(opening.schema, path=self._path)
            if self.log not in {None, opening.log}:
                raise StoreForeign(path=self._path, expected=str(self.log), found=opening.log)
            self.log = opening.log
        if record.version != self._version:
            self._upgrades = self._schema.upgrades_from(record.version, path=self._path)
            self._version = record.version

    def entry(self, record: JournalRecord) -> JournalEntry:
        """Bring the record that was met last up to date."""
        if not self._upgrades:
            return JournalEntry(record.seq, record.data)
        value: object = msgspec.json.decode(record.data)
        for upgrade in self._upgrades:
            value = upgrade(value)
        return JournalEntry(record.seq, msgspec.json.encode(value))
