"""Move the output of one process into its stream files as it arrives, and notify listeners.

Theory of operation:

    pipe ──splice──▶ stream file ──cover()──▶ index record ──▶ listeners (OutputSender)
    pty  ──splice──▶ keeper's pipe ──splice──▶ stream file ...

    drawing ──limit reached, output still needed──▶ paused (AWAITS_READER) ──keep_from──▶ drawing
       │    ──far ahead of the reader──▶ delayed by _AHEAD_WAIT ──timer or keep_from──▶ drawing
       └────OSError (disk full)──▶ stalled ──retry every _TRY_AGAIN s──▶ drawing

Order, which survives SIGKILL at any point: (1) bytes are in the stream file, (2) their record is in
the index, (3) listeners are notified. Exit comes after output that the process wrote before it;
close is last, after EOF of every stream. At the limit the oldest output is dropped, but never from
`keep_from` on: instead reading pauses, the pipe fills, and the process blocks in `write`
(backpressure). After the close all descriptors are released.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from holdfast.exec.failures import KeeperLost
from holdfast.exec.keeper.client_loop import KeptProcess
from holdfast.exec.model import AWAITS_READER, Event
from holdfast.exec.output_index import CHUNK_BYTES_MAX, Pieces, RecordRun
from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage.retention import OutputFiles
from holdfast.exec.storage.splice import SpliceSource, sources_of
from holdfast.exec.storage.stream_file import STEPS, EndRecord, ring_for
from holdfast.failures import Failure
from holdfast.world import disk_failure

RING_TASK = "exec ring"

# Fraction of the limit after which a stream is expected to go on.
_PART = 4
# Below it a ring would take more than what it keeps.
_LIMIT_LEAST = 16 * 2**20


class RingConversion:
    """Converts growing stream files with much output to ring buffers.

    Overwriting existing pages costs half of allocating new ones. A growing file tells the next
    server by its length how much was moved before a crash; for a ring the file position of a
    descriptor does, which the keeper must hold before anything is moved through it. If the keeper
    or the disk refuses, the file keeps growing.
    """

    def __init__(self, retained: OutputFiles, kept: KeptProcess | None, bytes_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._retained, self._kept = retained, kept
        self._enough, self._ring = bytes_max // _PART, ring_for(bytes_max)
        can_be = kept is not None and kept.can_hold and bytes_max >= _LIMIT_LEAST and self._ring > 0
        self._growing = set(range(len(retained.streams))) if can_be else set[int]()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        """Start converting files that have grown enough; asks the keeper in a task."""
        for stream in tuple(self._growing):
            if self._retained.files[stream].size > self._enough:
                self._growing.discard(stream)
                if self._kept is not None and not self._retained.files[stream].ring:
                    task = self._loop.create_task(self._make(stream, self._kept), name=RING_TASK)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel conversions."""
        self._growing.clear()
        for task in self._tasks:
            task.cancel()

    async def _make(self, stream: int, kept: KeptProcess) -> None:
        with suppress(OSError, KeeperLost):
            position = self._retained.files[stream].opened_again()
            is_taken = False
            try:
                name = self._retained.streams[stream]
                # What was kept when it began must be where a ring has it, too.
                if (
                    await kept.hold_position(name, position)
                    and self._retained.files[stream].size <= self._ring
                ):
                    self._retained.begin_ring(stream, self._ring, position)
                    is_taken = True
            finally:
                if not is_taken:
                    os.close(position)


BYTES_MAX = 64 * 2**20

_EVENTS_MAX = 4096
_TRY_AGAIN = 1.0
# Bytes ahead of the reader that still fit the CPU caches.
_AHEAD_BYTES = 2 * 2**20
_AHEAD_WAIT = 0.05


class Retention:
    """Retains the output of one process in files until it is dropped or removed.

    Output, exit and close share one sequence. Listeners are notified after the index record is
    written. At the limit the oldest output is dropped, except what `keep_from` protects: then the
    process waits.
    """

    def __init__(
        self,
        retained: OutputFiles,
        sources: list[SpliceSource],
        bytes_max: int,
        kept: KeptProcess | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._retained, self._sources = retained, sources
        self.streams: tuple[OutputStream, ...] = retained.streams
        """Where its output comes from, in the order in which the index numbers them."""
        self._rings = RingConversion(retained, kept, bytes_max)
        self._bytes_max = min(bytes_max, retained.bytes_max)
        self._needed: int | None = None
        self._is_followed = False
        self._exit: int | None = None
        self._listeners: list[Callable[[], None]] = []
        self._is_drawing = False
        self._timer: asyncio.TimerHandle | None = None
        self._step: asyncio.TimerHandle | None = None
        self._is_finished = False
        self.stalled: Failure | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        kept: KeptProcess | None,
        *,
        bytes_max: int = BYTES_MAX,
        is_needed: bool = False,
        end: EndRecord | None = None,
    ) -> Self:
        """Retain a new process, an adopted one, or (None) the files of one that has ended.

        Takes the output descriptors of the process. If it `is_needed` nothing is dropped until
        `keep_from` is called. With an `end` record, a process without output gets no files.
        """
        if kept is None:
            return cls(OutputFiles.found(directory, end), [], bytes_max)._begun()
        retained = OutputFiles(directory, kept.streams, end, kept.take_positions())
        retention = cls(retained, sources_of(kept), bytes_max, kept)
        retention._needed = retained.first if is_needed else None
        retention._begun()
        kept.on_exit(retention._exited)
        return retention

    @property
    def next_seq(self) -> int:
        """Sequence number of the next event."""
        return self._retained.position.next_seq

    @property
    def first_retained(self) -> int:
        """Oldest retained sequence number."""
        return self._retained.first

    @property
    def exit_status(self) -> int | None:
        """Exit status, once it is in the index."""
        return self._retained.position.exit_status

    @property
    def exit_seq(self) -> int | None:
        """Sequence number of the exit event, once there is one."""
        return self._retained.position.exit_seq

    @property
    def closed_seq(self) -> int | None:
        """Sequence number of the close event, once there is one."""
        return self.next_seq - 1 if self.is_closed else None

    @property
    def is_closed(self) -> bool:
        """Whether the process has exited and all its output is in the index."""
        return self._retained.position.is_closed

    @property
    def waits_for(self) -> str | None:
        """Why the process is blocked: the code of a disk failure, or AWAITS_READER."""
        if self.stalled is not None:
            return self.stalled.code
        is_held = not self._is_drawing and self._step is None
        is_open = any(not source.is_ended for source in self._sources)
        return AWAITS_READER if is_held and is_open else None

    def listen(self, told: Callable[[], None]) -> None:
        """Call back, in the event loop and without arguments, whenever there are new events."""
        self._listeners.append(told)

    def unlisten(self, told: Callable[[], None]) -> None:
        """Remove a callback."""
        self._listeners.remove(told)

    def events(
        self, after_seq: int, bytes_max: int | None, *, count_max: int = _EVENTS_MAX
    ) -> list[Event]:
        """Return the retained events after a sequence number, in order and without holes.

        The first piece of output is always included, then as many as fit into `bytes_max`.
        """
        return list(self._retained.events(after_seq, bytes_max, count_max))

    def runs(
        self, after_seq: int, bytes_max: int | None, *, count_max: int, memory: memoryview
    ) -> Iterator[tuple[RecordRun, Pieces]]:
        """Yield the same as runs, whose pieces are read lazily into `memory`.

        Each piece must be used before the next is read, which overwrites it.
        """
        return self._retained.runs(after_seq, bytes_max, count_max, memory)

    def keep_from(self, seq: int | None, *, is_followed: bool = True) -> None:
        """Protect events from this sequence number on against dropping; None protects nothing.

        `is_followed`: a client is connected and reads.
        """
        self._needed, self._is_followed = seq, is_followed
        if not self._is_drawing and self._timer is None:
            self._work(self._go_on)

    def mark_lost(self, status: int) -> None:
        """Record the end of a process whose keeper is gone: no output can follow."""
        for source in self._sources:
            self._stop(source)
        self._exited(status)

    def close(self) -> None:
        """Close every descriptor; the files stay. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        self._go_at_once()
        self._rings.close()
        for source in self._sources:
            self._stop(source)
        self._retained.close()

    def remove(self) -> None:
        """Close everything and delete the files."""
        self.close()
        self._retained.remove()

    def _begun(self) -> Self:
        self._work(self._take_over)
        return self

    def _take_over(self) -> None:
        """Start with what is in the files, in the pipes, and between terminal and file."""
        self._retained.cover()
        self._draw_and_make_room(*self._sources)

    def _exited(self, status: int) -> None:
        self._exit = status
        self._work(self._note_exit)

    def _go_on(self) -> None:
        """Resume reading; output that is already in the pipe triggers no new event of the loop."""
        if self._step is not None and not self._is_far_ahead():
            self._draw(*self._sources)
        self._make_room()

    def _note_exit(self) -> None:
        if self._is_drawing or self._step is not None:
            # What it said before its end comes before its end.
            self._draw(*self._sources)
        else:
            self._note_end()

    def _work(self, step: Callable[[], None]) -> None:
        """Run one step and notify listeners; after a disk failure retry later."""
        before = self.next_seq
        try:
            step()
        except OSError as error:
            self.stalled = disk_failure(error, path=str(self._retained.directory))
            self._pause()
            if self._timer is None:
                self._timer = self._loop.call_later(_TRY_AGAIN, self._try_again)
        if self.is_closed and not self._is_finished:
            self._finish()
        if self.next_seq > before:
            for told in tuple(self._listeners):
                told()

    def _finish(self) -> None:
        """Release the descriptors of a process whose exit and close are in the index."""
        self._is_finished = True
        self._go_at_once()
        self._rings.close()
        self._retained.release_descriptors()

    def _try_again(self) -> None:
        self._timer = self.stalled = None
        self._work(self._take_over)

    def _readable(self, *sources: SpliceSource) -> None:
        self._work(lambda: self._draw_and_make_room(*sources))

    def _draw_and_make_room(self, *sources: SpliceSource) -> None:
        self._draw(*sources)
        self._make_room()

    def _draw(self, *sources: SpliceSource) -> None:
        """Move the output of these sources into their files and the index, and record an end."""
        for source in sources:
            if not source.is_ended:
                self._draw_one(source)
        self._note_end()

    def _draw_one(self, source: SpliceSource) -> None:
        try:
            while (moved := self._moved(source)) is not None:
                self._retained.files[source.stream].grew(moved)
                if not moved:
                    self._stop(source)
                    break
                if not source.has_stages:
                    break
        finally:
            self._retained.cover()

    def _moved(self, source: SpliceSource) -> int | None:
        """Move output of one source; its file is created when there is the first output."""
        if source.stream in self._retained.unwritten and not (held := source.held()):
            return held
        return source.move(self._retained.place(source.stream))

    def _note_end(self) -> None:
        if self._exit is not None:
            is_last = all(source.is_ended for source in self._sources)
            self._retained.note_exit(self._exit, is_last=is_last)
            if is_last:
                self._retained.note_closed()

    def _make_room(self) -> None:
        """Drop the oldest output at the limit; if it is still needed, pause reading.

        Reading also pauses while it is far ahead of the reader, whose next output is then still in
        the CPU caches. If the reader is slow, reading goes on step by step.
        """
        self._go_at_once()
        self._rings.look()
        limit = self._bytes_max + self._bytes_max // STEPS
        if self._retained.cost > limit:
            self._retained.drop(self._bytes_max, before=self._needed)
        if self._retained.cost > limit and self._needed is not None:
            self._pause()
        elif self._is_far_ahead():
            self._pause()
            self._step = self._loop.call_later(_AHEAD_WAIT, self._readable, *self._sources)
        elif not self._is_drawing:
            self._is_drawing = True
            for source in self._sources:
                if not source.is_ended:
                    self._loop.add_reader(source.fd, self._readable, source)

    def _is_far_ahead(self) -> bool:
        seq = self._needed
        if seq is None or not self._is_followed:
            return False
        is_near = (self.next_seq - seq) * CHUNK_BYTES_MAX < _AHEAD_BYTES
        return not is_near and self._retained.cost_from(seq) > _AHEAD_BYTES

    def _go_at_once(self) -> None:
        if self._step is not None:
            self._step.cancel()
            self._step = None

    def _pause(self) -> None:
        was_drawing, self._is_drawing = self._is_drawing, False
        for source in self._sources:
            if was_drawing and not source.is_ended:
                self._loop.remove_reader(source.fd)

    def _stop(self, source: SpliceSource) -> None:
        if not source.is_ended:
            self._loop.remove_reader(source.fd)
            source.close()
