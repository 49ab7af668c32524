"""A log of one kind of record, opened for writing when there is something to write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from holdfast.failures import Failure
from holdfast.world import (
    Bookmark,
    Disk,
    Journal,
    RecordSchema,
    Schema,
    disk_failure,
    encode_record,
    make_private,
    read_journal,
)
from holdfast.world.failures import DiskMissing

_VERSION = 1
Line = TypeVar("Line", bound=msgspec.Struct)


class Logbook(Generic[Line]):
    """Lines of JSON that are only ever added to, and that a person can read.

    Whoever only reads changes nothing, not even what is damaged; that waits for the next writer.
    """

    def __init__(self, disk: Disk, path: Path, of: type[Line]) -> None:
        self._disk = disk
        self._path = path
        self._of = of
        self._schema: RecordSchema = Schema(path.stem, _VERSION)
        self._journal: Journal | None = None
        self._bookmark: Bookmark | None = None

    def add(self, line: Line) -> None:
        """Keep a line; it is durable when this returns, and not there when it raises."""
        batch = [encode_record(line)]
        if self._journal is not None:
            self._journal.append(batch)
            return
        self._make_room()
        self._journal = Journal.open(
            self._disk,
            self._path,
            schema=self._schema,
            log=self._path.stem,
            since=self._bookmark,
            batch=batch,
        )

    def all(self) -> Iterator[Line]:
        """Every line, oldest first; what is damaged is passed over."""
        try:
            for entry in read_journal(self._disk, self._path, schema=self._schema):
                yield msgspec.json.decode(entry.data, type=self._of)
        except DiskMissing:
            return

    def close(self) -> None:
        """Let another writer have it; this one need not read all of it when it writes again."""
        if self._journal is not None:
            with suppress(Failure):  # then all of it is read
                self._bookmark = self._journal.bookmark
            self._journal.close()
            self._journal = None

    def _make_room(self) -> None:
        directory = self._path.parent
        if directory.is_dir():
            return
        try:
            make_private(directory)
        except OSError as error:
            raise disk_failure(error, path=str(directory)) from error
        self._disk.sync_directory(directory.parent)
