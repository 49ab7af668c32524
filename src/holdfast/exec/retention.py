"""Keep what a process has put out in files, from which it is read again as often as needed.

No byte is ever only in our memory: the kernel moves output from the pipe into the file of its
stream (`splice`), and what the index does not cover yet is found there by whoever opens it next.
Nothing is synced: output outlives any process, and after a power cut its process is gone too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from holdfast.exec.core.index import (
    RECORD_BYTES,
    Header,
    Kind,
    Position,
    Record,
    Run,
    covering,
    first_within,
    read_cost,
    read_header,
    read_record,
    read_runs,
    recover,
)
from holdfast.exec.holes import punch
from holdfast.exec.index_file import End, IndexFile
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.wire import Stream

MOVE_BYTES_MAX = 2**20
STEPS = 16  # in which the oldest is dropped: each a sixteenth of the limit

_RECORDS_AT_ONCE = 128
_HERE_AND_NOW = getattr(os, "SPLICE_F_NONBLOCK", 0)


def move(source: int, file: int, offset: int) -> int | None:
    """Move what a pipe holds to this place of a file; None if it holds nothing, 0 at its end."""
    try:
        return os.splice(source, file, MOVE_BYTES_MAX, offset_dst=offset, flags=_HERE_AND_NOW)
    except BlockingIOError:
        return None


def move_terminal(master: int, pipe: int) -> int | None:
    """Move what a terminal shows into a pipe; None if there is nothing new, 0 at its end."""
    try:
        return os.splice(master, pipe, MOVE_BYTES_MAX, flags=_HERE_AND_NOW)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno != errno.EIO:  # nobody has the other side of the terminal open
            raise
        return 0


def widen(pipe: int) -> None:
    """Let a pipe hold what one move takes; a user who has used up their share keeps the default."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, MOVE_BYTES_MAX)


class Retained:
    """The files of one process: one for each stream, and the index over them.

    Whoever opens them is the only one who writes to them. A record that could not be written is
    written again with the next, so that a full disk loses nothing.
    """

    def __init__(
        self, directory: Path, streams: tuple[Stream, ...], end: End | None = None
    ) -> None:
        self.directory, self.streams = directory, streams
        self._files = [_found(f"{directory}/{stream}") for stream in streams]
        self.unheard = {stream for stream, file in enumerate(self._files) if file is None}
        """The streams that have said nothing yet and have no file."""
        self._index, self._end = IndexFile(f"{directory}/index"), end
        sizes = [0 if file is None else os.fstat(file).st_size for file in self._files]
        self._sizes = sizes + [0] * (2 - len(streams))
        header = read_header(self._index.read(RECORD_BYTES, 0)) or Header()
        count = self._index.size // RECORD_BYTES - 1
        self._header, self.position = recover(
            header, count, self._record_at, (self._sizes[0], self._sizes[1])
        )
        self._write_header(self._header)
        if end is not None and end.status is not None and self.position.next_seq == 1:
            self._put_exit(end.status)  # nobody could be told of anything before
            if end.is_closed:
                self._put_closed()
        self._dropped_cost = self._cost_before(self.first)
        self._punched = [0] * len(streams)

    @classmethod
    def found(cls, directory: Path, end: End | None = None) -> Retained:
        """What was kept of a process that nobody holds any more."""
        has_pipes = any((directory / each).exists() for each in (Stream.STDOUT, Stream.STDERR))
        return cls(directory, (Stream.STDOUT, Stream.STDERR) if has_pipes else (Stream.PTY,), end)

    @property
    def first(self) -> int:
        """The oldest number that is still kept, or the next one if none is."""
        return self._header.first

    @property
    def cost(self) -> int:
        """How many bytes are kept, those of the index included."""
        return self.position.cost - self._dropped_cost

    def cost_from(self, seq: int) -> int:
        """How many bytes are kept from a number on, which is kept, those of the index included."""
        return self.position.cost - self._cost_before(max(seq, self.first))

    def place(self, stream: int) -> tuple[int, int]:
        """The file of a stream, which is made if it is missing, and where its next output goes."""
        file = self._files[stream]
        if file is None:
            self._index.settle()
            file = self._files[stream] = _opened(f"{self.directory}/{self.streams[stream]}")
            self.unheard.discard(stream)
        return file, self._sizes[stream]

    def grew(self, stream: int, count: int) -> None:
        """Learn that output was moved to that place; it counts once it is in the index."""
        self._sizes[stream] += count

    def cover(self) -> bool:
        """Bring all output in the files into the index; say whether there was any."""
        return self._append(*covering(self.position, (self._sizes[0], self._sizes[1])))

    def note_exit(self, status: int, *, is_last: bool = False) -> None:
        """Write down how the process ended; only the first time counts.

        If that is the last thing to happen, its close is written down with it.
        """
        if self.position.exit_seq is None:
            self._note_end(status, is_closed=is_last)
            self._put_exit(status)
            if is_last:
                self._put_closed()

    def note_closed(self) -> None:
        """Write down that there will be no more; only the first time counts."""
        at = self.position
        if not at.is_closed:
            assert at.exit_status is not None, "what is closed has ended"
            self._note_end(at.exit_status, is_closed=True)
            self._put_closed()

    def events(self, after_seq: int, bytes_max: int | None, count_max: int) -> Iterator[Event]:
        """What happened after a number and is still kept, in order.

        The first piece of output is always there, then those that `bytes_max` has room for.
        """
        for run, data in self.runs(after_seq, bytes_max, count_max):
            end = 0
            for seq, length in enumerate(run.lengths, start=run.first_seq):
                begin, end = end, end + length
                yield self._event(run, seq, data[begin:end])

    def runs(
        self, after_seq: int, bytes_max: int | None, count_max: int
    ) -> Iterator[tuple[Run, bytes]]:
        """The same in larger pieces, each read when it is asked for, which must be at once."""
        seq = max(after_seq + 1, self.first)
        end = min(self.position.next_seq, seq + count_max)
        room, is_begun = sys.maxsize if bytes_max is None else bytes_max, False
        while seq < end:
            count = min(_RECORDS_AT_ONCE, end - seq)
            data = self._index.read(count * RECORD_BYTES, seq * RECORD_BYTES)
            for run in read_runs(data, seq, bytes_max=room, is_begun=is_begun):
                size = run.size
                yield run, os.pread(self.place(run.stream)[0], size, run.offset) if size else b""
                seq, room, is_begun = run.last_seq + 1, room - size, is_begun or size > 0
                count -= len(run.lengths)
            if count:  # there was no room for all of them
                return

    def drop(self, bytes_max: int, before: int | None) -> None:
        """Drop the oldest until the rest fits, but nothing from `before` on."""
        most = self.position.next_seq if before is None else before
        if most <= self.first:
            return
        step = max(1, bytes_max // STEPS)
        first = first_within(bytes_max, self.position, (self.first, most), self._cost_before)
        if first > self.first:
            self._write_header(replace(self._header, first=first))
            record = self._record_at(first)
            assert record is not None, "the newest record is kept"
            self._dropped_cost = record.cost
            for stream, file in enumerate(self._files):
                # In large steps, for the page cache is kept in large pieces, too.
                end = record.starts[stream] // step * step
                if file is not None:
                    punch(file, self._punched[stream], end)
                self._punched[stream] = end
            self._index.punch(RECORD_BYTES, first * RECORD_BYTES // step * step)

    def close(self) -> None:
        """Let go of the files; may be called again."""
        while self._files:
            if (file := self._files.pop()) is not None:
                os.close(file)
        self._index.close()

    def remove(self) -> None:
        """Let go of the files and delete them, with all that stands beside them."""
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _note_end(self, status: int, *, is_closed: bool) -> None:
        """Write the end down where it outlives us, unless that is the index itself."""
        if self._end is None:
            self._index.settle()
        elif not self._index.is_settled:
            self._end.note(status, is_closed)

    def _put_exit(self, status: int) -> None:
        at = self.position
        # First where it will be: the record itself may be dropped one day.
        self._write_header(replace(self._header, exit_seq=at.next_seq, exit_status=status))
        self._put(Record(seq=at.next_seq, kind=Kind.EXITED, starts=at.covered, status=status))

    def _put_closed(self) -> None:
        at = self.position
        self._put(Record(seq=at.next_seq, kind=Kind.CLOSED, starts=at.covered))

    def _put(self, record: Record) -> None:
        self._append(record.pack(), self.position.after(record))

    def _append(self, records: bytes, position: Position) -> bool:
        """Write records in one go; if they did not fit whole, none of them is there."""
        if records:
            self._index.write(records, self.position.next_seq * RECORD_BYTES)
        self.position = position
        return bool(records)

    def _write_header(self, header: Header) -> None:
        self._index.write(header.pack(), 0)
        self._header = header

    def _record_at(self, seq: int) -> Record | None:
        return read_record(self._index.read(RECORD_BYTES, seq * RECORD_BYTES), seq)

    def _cost_before(self, seq: int) -> int:
        if seq >= self.position.next_seq:
            return self.position.cost
        return read_cost(self._index.read(RECORD_BYTES, seq * RECORD_BYTES), seq)

    def _event(self, run: Run, seq: int, data: bytes) -> Event:
        match run.kind:
            case Kind.OUTPUT:
                return Output(seq, self.streams[run.stream], data)
            case Kind.EXITED:
                return Exited(seq, run.status)
            case Kind.CLOSED:
                return Closed(seq)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _found(path: str) -> int | None:
    """A file, if it is there: new ones cost much, and many streams never say anything."""
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
