"""A log on disk that keeps what it has acknowledged, and opens whatever happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import NoReturn, Self

from holdfast.failures import Failure
from holdfast.world.failures import (
    DiskDenied,
    DiskMissing,
    DiskOccupied,
    DiskUnusable,
    JournalFenced,
    JournalHeld,
    StoreForeign,
    StoreReadOnly,
)
from holdfast.world.file_replacement import remove_leftovers, replace_file, write_all
from holdfast.world.journal_format import (
    FORMAT,
    Encoded,
    JournalHeader,
    JournalRecord,
    Repairs,
    Scanner,
    encode_record,
    write_line,
    write_lines,
)
from holdfast.world.journal_reader import (
    Bookmark,
    JournalEntry,
    RecordSchema,
    Survey,
    read_entries,
    scan,
    survey,
    survey_since,
)
from holdfast.world.ports import Disk, OpenFile

# Set the damaged bytes of a journal aside, so that a writer can go on without them.

_PIECE_BYTES = 1024 * 1024


def cut_tail(disk: Disk, path: Path, file: OpenFile, found: Survey) -> str:
    """Move what follows the last intact record to a file of its own; return its name."""
    aside = _free_name(disk, path)
    replace_file(disk, aside, _pieces(file, found.end))
    file.truncate(found.end)
    return aside.name


def rewrite(disk: Disk, path: Path, file: OpenFile) -> str:
    """Replace a journal by its intact records and keep the original; return its new name."""
    aside = _free_name(disk, path)
    try:
        disk.link(path, aside)
    except (DiskDenied, DiskUnusable):  # not every file system has second names
        replace_file(disk, aside, _pieces(file, 0))
    disk.sync_directory(path.parent)
    replace_file(disk, path, _intact_lines(file))
    return aside.name


def _free_name(disk: Disk, path: Path) -> Path:
    names, number = set(disk.names(path.parent)), 1
    while (name := f"{path.name}.damaged-{number}") in names:
        number += 1
    return path.with_name(name)


def _pieces(file: OpenFile, at: int) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES, at=at):
        yield piece
        at += len(piece)


def _intact_lines(file: OpenFile) -> Iterator[bytes]:
    for found in scan(file, Scanner()):
        if isinstance(found, JournalRecord):
            yield write_line(found)


_PRIVATE = 0o600


class Journal:
    """The one writer of a log: what `append` returned for is on disk, whatever comes next.

    A write that fails leaves the log as it was, and it goes on once there is room again. Once a
    sync has failed the content of the disk is unknown, so the journal refuses further records and
    goes on being read. `append` may be called from any thread.
    """

    def __init__(  # only `open` makes one, all by keyword
        self,
        *,
        path: Path,
        schema: RecordSchema,
        log: str,
        held: OpenFile,
        file: OpenFile,
        found: Survey,
    ) -> None:
        self.path = path
        self.log = log
        self.epoch = found.epoch + 1
        self.repairs: Repairs = found.repairs
        self._schema = schema
        self._held = held
        self._file = file
        self._seq = found.seq
        self._length = found.end
        self._refusal: Failure | None = None
        self._guard = Lock()

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: Path,
        *,
        schema: RecordSchema,
        log: str,
        since: Bookmark | None = None,
        batch: Sequence[Encoded] = (),
    ) -> Self:
        """Become the one writer of a log, made if it is missing and repaired if it is damaged.

        `log` is the name that a new log is given, and that one which exists must have. With the
        bookmark of an earlier writer, what that one has seen is not read again. A batch that is
        given is appended at once; when it raises, there is nothing of it.
        """
        with ExitStack() as undo:
            held = _hold(disk, path)
            undo.callback(held.close)
            remove_leftovers(disk, path)
            file, found, is_known = _open_repaired(disk, path, schema=schema, log=log, since=since)
            undo.callback(file.close)
            journal = cls(path=path, schema=schema, log=log, held=held, file=file, found=found)
            if is_known:  # so its name is durable, too
                journal._announce(batch, is_terminated=found.is_terminated)
            else:
                journal._announce((), is_terminated=found.is_terminated)
                disk.sync_directory(path.parent)
                if batch:
                    journal.append(batch)
            undo.pop_all()
        return journal

    @property
    def seq(self) -> int:
        """The number of the last record that is on disk; 0 before the first."""
        return self._seq

    @property
    def bookmark(self) -> Bookmark | None:
        """A bookmark from which the next opening may read on; None after a failed write."""
        if self._refusal is not None:
            return None
        status = self._file.status()
        return Bookmark(
            device=status.device,
            inode=status.inode,
            log=self.log,
            seq=self._seq,
            epoch=self.epoch,
            end=self._length,
        )

    def append(self, batch: Sequence[Encoded]) -> int:
        """Keep these records, all or none; return the number of the first one."""
        assert batch, "there is nothing to append"
        with self._guard:
            first = self._seq + 1
            self._write(self._lines(batch))
            self._seq += len(batch)
        return first

    def read(self, *, after: int = 0) -> Iterator[JournalEntry]:
        """Yield what is on disk now, from the record that follows number `after`."""
        return read_entries(
            self._file, self.path, schema=self._schema, after=after, until=self._length
        )

    def close(self) -> None:
        """Let another writer have it; may be called again."""
        with self._guard:
            self._file.close()
            self._held.close()

    def _announce(self, batch: Sequence[Encoded], *, is_terminated: bool) -> None:
        """Write the opening, and what comes with it."""
        opening = JournalHeader(FORMAT, self.log, self._schema.name, self.repairs)
        line = write_line(
            JournalRecord(
                self._seq, self.epoch, self._schema.version, encode_record(opening), is_opening=True
            )
        )
        self._write((line if is_terminated else b"\n" + line) + self._lines(batch))
        self._seq += len(batch)

    def _lines(self, batch: Sequence[Encoded]) -> bytes:
        return write_lines(
            batch, first=self._seq + 1, epoch=self.epoch, version=self._schema.version
        )

    def _write(self, lines: bytes) -> None:
        if self._refusal is not None:
            raise copy(self._refusal)
        file = self._file
        if not file.is_still(self._length):
            self._fence()
        try:
            write_all(file, lines, path=self.path)
        except Failure:
            self._roll_back()
            raise
        try:
            file.sync_data()
            self._length += len(lines)
            if not file.is_still(self._length):
                self._fence()
        except Failure as failure:
            self._refuse(failure)
            raise

    def _roll_back(self) -> None:
        """Truncate a partly written batch, so that no reader sees it."""
        try:
            self._file.truncate(self._length)
            self._file.sync_data()
        except Failure as failure:
            self._refuse(failure)

    def _fence(self) -> NoReturn:
        """Refuse from now on: the file is no longer the one that we alone have written."""
        self._refusal = JournalFenced(path=str(self.path), epoch=self.epoch)
        raise copy(self._refusal)

    def _refuse(self, cause: Failure) -> None:
        if self._refusal is None:
            self._refusal = StoreReadOnly(path=str(self.path), cause=cause.code)


def _hold(disk: Disk, path: Path) -> OpenFile:
    held = _open_or_create(disk, path.with_name(f"{path.name}.lock"))
    if not held.lock():
        held.close()
        raise JournalHeld(path=str(path))
    return held


def _open_or_create(disk: Disk, path: Path) -> OpenFile:
    while True:
        try:
            return disk.open_to_write(path)
        except DiskMissing:
            with suppress(DiskOccupied):  # another process created it first
                return disk.create(path, mode=_PRIVATE)


def _open_repaired(
    disk: Disk, path: Path, *, schema: RecordSchema, log: str, since: Bookmark | None
) -> tuple[OpenFile, Survey, bool]:
    """Open a journal such that its last byte is the end of an intact record.

    The last value is whether the file is the one that the bookmark belongs to.
    """
    with ExitStack() as undo:
        file = _open_or_create(disk, path)
        undo.callback(file.close)
        known = since and survey_since(file, path, schema=schema, since=since)
        found = known or survey(file, path, schema=schema)
        if found.log not in {None, log}:
            raise StoreForeign(path=str(path), expected=log, found=str(found.log))
        if found.is_damaged_inside:
            repairs = replace(found.repairs, set_aside=(rewrite(disk, path, file),))
            file.close()
            file = disk.open_to_write(path)
            undo.callback(file.close)
            found = replace(survey(file, path, schema=schema), repairs=repairs)
        elif found.end < found.size:
            repairs = replace(found.repairs, set_aside=(cut_tail(disk, path, file, found),))
            found = replace(found, repairs=repairs)
        undo.pop_all()
    return file, found, known is not None
