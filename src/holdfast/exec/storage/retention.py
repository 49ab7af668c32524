"""Retained output of a process: stream files and their index.

No byte exists only in our memory: `splice` moves output from the pipe into the stream file, and the
next server indexes what is past the end of the index. Nothing is fsynced: output outlives any
process of ours, and after a power loss its process is gone too.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.output_index import (
    RECORD_BYTES,
    IndexHeader,
    IndexPosition,
    IndexRecord,
    Pieces,
    RecentRuns,
    RecordKind,
    RecordRun,
    first_within,
    read_cost,
    read_header,
    read_record,
    read_runs,
    recover,
    uncovered_records,
)
from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage.splice import SpliceTarget
from holdfast.exec.storage.stream_file import (
    STEPS,
    EndRecord,
    IndexFile,
    StreamFile,
    limit_of,
    piece_memory,
)

_RECORDS_AT_ONCE = 128


class OutputFiles:
    """Stream files of one process, and the index over them.

    The opener is the only writer. A record that could not be written is written again with the next
    one, so that a full disk loses nothing. `positions` are the descriptors of ring positions that
    the keeper holds.
    """

    def __init__(
        self,
        directory: Path,
        streams: tuple[OutputStream, ...],
        end: EndRecord | None = None,
        positions: Mapping[OutputStream, int] | None = None,
    ) -> None:
        self.directory, self.streams = directory, streams
        held = positions or {}
        self.files = [StreamFile(f"{directory}/{each}", held.get(each)) for each in streams]
        """What each stream has put out; it counts once it is in the index."""
        self.unwritten = {stream for stream, file in enumerate(self.files) if not file.is_there}
        """The streams that have said nothing yet and have no file."""
        self._index, self._end = IndexFile(f"{directory}/index"), end
        header = read_header(self._index.read(RECORD_BYTES, 0)) or IndexHeader()
        count = self._index.size // RECORD_BYTES - 1
        sizes = [file.size for file in self.files] + [0] * (2 - len(streams))
        known = [sys.maxsize if header.rings[each] else sizes[each] for each in range(2)]
        self._header, self.position = recover(header, count, self._record_at, (known[0], known[1]))
        for stream, file in enumerate(self.files):
            if header.rings[stream]:
                file.take_up_ring(header.rings[stream], self.position.covered[stream])
        self._write_header(self._header)
        if end is not None and end.status is not None and self.position.next_seq == 1:
            # Without an index file no event was sent before.
            self._put_exit(end.status)
            if end.is_closed:
                self._put_closed()
        self._recent = RecentRuns()
        self._dropped_cost = self._cost_before(self.first)
        oldest = self._record_at(self.first)
        self._drop_files(self.position.covered if oldest is None else oldest.starts, sys.maxsize)

    @classmethod
    def found(cls, directory: Path, end: EndRecord | None = None) -> OutputFiles:
        """Open the files of a process that no keeper holds any more."""
        has_pipes = any(
            (directory / each).exists() for each in (OutputStream.STDOUT, OutputStream.STDERR)
        )
        return cls(
            directory,
            (OutputStream.STDOUT, OutputStream.STDERR) if has_pipes else (OutputStream.PTY,),
            end,
        )

    @property
    def first(self) -> int:
        """The oldest retained sequence number, or the next one if nothing is retained."""
        return self._header.first

    @property
    def cost(self) -> int:
        """Retained bytes, index included."""
        return self.position.cost - self._dropped_cost

    def cost_from(self, seq: int) -> int:
        """Return the retained bytes from a sequence number on, index included."""
        return self.position.cost - self._cost_before(max(seq, self.first))

    @property
    def bytes_max(self) -> int:
        """Capacity in bytes; unbounded if no stream is a ring."""
        rings = [limit_of(file.ring) for file in self.files if file.ring]
        return min(rings, default=sys.maxsize)

    def place(self, stream: int) -> SpliceTarget:
        """Return where `splice` writes the next output of a stream; creates its file if missing."""
        if stream in self.unwritten:
            self._index.settle()
            self.files[stream].make()
            self.unwritten.discard(stream)
        return self.files[stream].place()

    def cover(self) -> bool:
        """Index all output in the files; returns whether there was any."""
        sizes = [file.size for file in self.files] + [0] * (2 - len(self.files))
        records, position, run = uncovered_records(self.position, (sizes[0], sizes[1]))
        cost, is_new = self.position.cost, self._append(records, position)
        if run is not None:
            self._recent.put(run, cost)
        return is_new

    def begin_ring(self, stream: int, ring: int, position: int) -> None:
        """Convert a stream file to a ring, whose position descriptor the keeper holds too.

        Owns the descriptor, unless it raises `OSError`.
        """
        if self._end is not None:
            self._end.note_rings()
        rings = list(self._header.rings)
        rings[stream] = ring
        # The position must be set before the header names the ring: recovery trusts it.
        os.lseek(position, self.files[stream].size, os.SEEK_SET)
        self._write_header(replace(self._header, rings=(rings[0], rings[1])))
        self.files[stream].begin_ring(ring, position)

    def note_exit(self, status: int, *, is_last: bool = False) -> None:
        """Record the exit status, once; with `is_last` the close too."""
        if self.position.exit_seq is None:
            self._note_end(status, is_closed=is_last)
            self._put_exit(status)
            if is_last:
                self._put_closed()

    def note_closed(self) -> None:
        """Record the close, once."""
        at = self.position
        if not at.is_closed:
            assert at.exit_status is not None, "what is closed has ended"
            self._note_end(at.exit_status, is_closed=True)
            self._put_closed()

    def events(self, after_seq: int, bytes_max: int | None, count_max: int) -> Iterator[Event]:
        """Yield the retained events after a sequence number, in order.

        The first piece of output is always included, then as many as fit into `bytes_max`.
        """
        for run, pieces in self.runs(after_seq, bytes_max, count_max, piece_memory()):
            for seq, piece in pieces:
                yield self._event(run, seq, bytes(piece))

    def runs(
        self, after_seq: int, bytes_max: int | None, count_max: int, memory: memoryview
    ) -> Iterator[tuple[RecordRun, Pieces]]:
        """Yield the same as runs, whose pieces are read lazily into `memory`.

        Each piece must be used before the next is read, which overwrites it.
        """
        seq = max(after_seq + 1, self.first)
        end = min(self.position.next_seq, seq + count_max)
        room, is_begun = sys.maxsize if bytes_max is None else bytes_max, False
        while seq < end:
            count = min(_RECORDS_AT_ONCE, end - seq)
            runs = self._runs_at(seq, count, room, is_begun=is_begun)
            # The byte limit is reached.
            if not runs:
                return
            for run in runs:
                size = run.size
                yield run, self._pieces(run, memory)
                seq, room, is_begun = run.last_seq + 1, room - size, is_begun or size > 0

    def drop(self, bytes_max: int, before: int | None) -> None:
        """Drop the oldest output until the rest fits into `bytes_max`, but nothing from
        `before` on.
        """
        most = self.position.next_seq if before is None else before
        if most <= self.first:
            return
        step = max(1, bytes_max // STEPS)
        first = first_within(bytes_max, self.position, (self.first, most), self._cost_before)
        if first > self.first:
            record = self._record_at(first)
            if record is None:
                # It is damaged; with more output, another is the first.
                return
            self._write_header(replace(self._header, first=first))
            self._dropped_cost = record.cost
            self._drop_files(record.starts, step)
            self._index.punch(RECORD_BYTES, first * RECORD_BYTES // step * step)

    def release_descriptors(self) -> None:
        """Close all descriptors of a finished process; each read opens the files it needs."""
        for file in self.files:
            file.release_descriptors()
        self._index.release_descriptor()

    def close(self) -> None:
        """Close the files; idempotent."""
        for file in self.files:
            file.close()
        self._index.close()

    def remove(self) -> None:
        """Close the files and remove their directory."""
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _pieces(self, run: RecordRun, memory: memoryview) -> Pieces:
        """Read the output of a run in blocks that fit the CPU caches."""
        read, offset, left = self.files[run.stream].read, run.offset, run.size
        begin = end = 0
        for seq, length in enumerate(run.lengths, start=run.first_seq):
            # Read it, and of what follows as much as there is room for.
            if end - begin < length:
                begin, end = 0, read(memory[:left], offset)
            yield seq, memory[begin : min(begin + length, end)]
            begin, offset, left = begin + length, offset + length, left - length

    def _drop_files(self, starts: tuple[int, int], step: int) -> None:
        for file, start in zip(self.files, starts, strict=False):  # a terminal has only one
            file.drop(start, step)

    def _note_end(self, status: int, *, is_closed: bool) -> None:
        """Record the end where it survives us, unless the index itself is a file."""
        if self._end is None:
            self._index.settle()
        elif not self._index.is_settled:
            self._end.note(status, is_closed)

    def _put_exit(self, status: int) -> None:
        at = self.position
        # First where it will be: the record itself may be dropped one day.
        self._write_header(replace(self._header, exit_seq=at.next_seq, exit_status=status))
        self._put(
            IndexRecord(seq=at.next_seq, kind=RecordKind.EXITED, starts=at.covered, status=status)
        )

    def _put_closed(self) -> None:
        at = self.position
        self._put(IndexRecord(seq=at.next_seq, kind=RecordKind.CLOSED, starts=at.covered))

    def _put(self, record: IndexRecord) -> None:
        self._append(record.pack(), self.position.after(record))

    def _append(self, records: bytes, position: IndexPosition) -> bool:
        """Write records with one call; if it is short, none of them counts."""
        if records:
            self._index.write(records, self.position.next_seq * RECORD_BYTES)
        self.position = position
        return bool(records)

    def _write_header(self, header: IndexHeader) -> None:
        self._index.write(header.pack(), 0)
        self._header = header

    def _record_at(self, seq: int) -> IndexRecord | None:
        return read_record(self._index.read(RECORD_BYTES, seq * RECORD_BYTES), seq)

    def _cost_before(self, seq: int) -> int:
        if seq >= self.position.next_seq:
            return self.position.cost
        if (cost := self._recent.cost_before(seq)) is not None:
            return cost
        return read_cost(self._index.read(RECORD_BYTES, seq * RECORD_BYTES), seq)

    def _runs_at(self, seq: int, count: int, bytes_max: int, *, is_begun: bool) -> list[RecordRun]:
        """Return runs from the cache of recent output, else from the index file."""
        found = self._recent.parts(seq, count, bytes_max=bytes_max, is_begun=is_begun)
        if found is not None:
            return found
        data = self._index.read(count * RECORD_BYTES, seq * RECORD_BYTES)
        return read_runs(data, seq, bytes_max=bytes_max, is_begun=is_begun)

    def _event(self, run: RecordRun, seq: int, data: bytes) -> Event:
        match run.kind:
            case RecordKind.OUTPUT:
                return Output(seq, self.streams[run.stream], data)
            case RecordKind.EXITED:
                return Exited(seq, run.status)
            case RecordKind.CLOSED:
                return Closed(seq)
