"""Move the output of one process into its files as it comes, and tell of it afterwards."""

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

# Make rings of the files of streams that pour, once the keeper holds their positions.

RING_TASK = "exec ring"

_PART = 4  # of the limit: who has put out so much will go on
_LIMIT_LEAST = 16 * 2**20  # below it a ring would take more than what it keeps


class RingConversion:
    """The streams of one process whose files still grow.

    To write over pages that are there costs half of what new ones do. But a file that grows tells
    a server by its length how much the last one had moved into it when it was killed; for a ring
    the position of a descriptor does, which must be the keeper's before anything is moved by it.
    Where the keeper or the disk refuses, the file goes on growing.
    """

    def __init__(self, retained: OutputFiles, kept: KeptProcess | None, bytes_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._retained, self._kept = retained, kept
        self._enough, self._ring = bytes_max // _PART, ring_for(bytes_max)
        can_be = kept is not None and kept.can_hold and bytes_max >= _LIMIT_LEAST and self._ring > 0
        self._growing = set(range(len(retained.streams))) if can_be else set[int]()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        """Make rings of what has grown enough; the keeper is asked meanwhile."""
        for stream in tuple(self._growing):
            if self._retained.files[stream].size > self._enough:
                self._growing.discard(stream)
                if self._kept is not None and not self._retained.files[stream].ring:
                    task = self._loop.create_task(self._make(stream, self._kept), name=RING_TASK)
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Make no more."""
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
_AHEAD_BYTES = 2 * 2**20  # of whoever is told: so much stays in the caches of the processor
_AHEAD_WAIT = 0.05


class Retention:
    """What one process puts out, kept in order and in files, until it is dropped or removed.

    Output, exit and close share one sequence of numbers. Whoever listens is told after the index
    has the news. At the limit the oldest output is dropped; but while somebody has still to be
    told of it (`keep_from`), nothing more is taken from the process instead, which then waits.
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
        """Keep a new process, one that a former server kept, or (None) what is left of one.

        Takes the process's output descriptors, and moves what comes from now on. If it `is_needed`
        nothing is dropped until `keep_from` says what may be. With an `end` to note, one that says
        nothing gets no files.
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
        """The number that the next event will have."""
        return self._retained.position.next_seq

    @property
    def first_retained(self) -> int:
        """The oldest number that is still kept."""
        return self._retained.first

    @property
    def exit_status(self) -> int | None:
        """How the process ended, once that is in the index."""
        return self._retained.position.exit_status

    @property
    def exit_seq(self) -> int | None:
        """The number of its exit, once it has one."""
        return self._retained.position.exit_seq

    @property
    def closed_seq(self) -> int | None:
        """The number of its close, which is the last, once it has one."""
        return self.next_seq - 1 if self.is_closed else None

    @property
    def is_closed(self) -> bool:
        """Whether it has ended and all its output is in the index."""
        return self._retained.position.is_closed

    @property
    def waits_for(self) -> str | None:
        """What keeps the process waiting: a failure of the disk, by its code, or its reader."""
        if self.stalled is not None:
            return self.stalled.code
        is_held = not self._is_drawing and self._step is None
        is_open = any(not source.is_ended for source in self._sources)
        return AWAITS_READER if is_held and is_open else None

    def listen(self, told: Callable[[], None]) -> None:
        """Call this, from the loop and without arguments, whenever there are new events."""
        self._listeners.append(told)

    def unlisten(self, told: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.remove(told)

    def events(
        self, after_seq: int, bytes_max: int | None, *, count_max: int = _EVENTS_MAX
    ) -> list[Event]:
        """What happened after a number, in order and without holes, from the oldest kept on.

        The first piece of output is always there, then those that `bytes_max` has room for.
        """
        return list(self._retained.events(after_seq, bytes_max, count_max))

    def runs(
        self, after_seq: int, bytes_max: int | None, *, count_max: int, memory: memoryview
    ) -> Iterator[tuple[RecordRun, Pieces]]:
        """The same in runs, each piece read when it is asked for, which must be at once.

        It is read into `memory`, over those before it.
        """
        return self._retained.runs(after_seq, bytes_max, count_max, memory)

    def keep_from(self, seq: int | None, *, is_followed: bool = True) -> None:
        """Drop nothing from this number on, for somebody has not been told; None: nobody asks.

        While it `is_followed` somebody is there to be told.
        """
        self._needed, self._is_followed = seq, is_followed
        if not self._is_drawing and self._timer is None:
            self._work(self._go_on)

    def mark_lost(self, status: int) -> None:
        """Note that the process has ended and nothing will follow, for its keeper is gone."""
        for source in self._sources:
            self._stop(source)
        self._exited(status)

    def close(self) -> None:
        """Let go of every descriptor; the files stay. May be called again."""
        if self._timer is not None:
            self._timer.cancel()
        self._go_at_once()
        self._rings.close()
        for source in self._sources:
            self._stop(source)
        self._retained.close()

    def remove(self) -> None:
        """Let go of everything and delete it."""
        self.close()
        self._retained.remove()

    def _begun(self) -> Self:
        self._work(self._take_over)
        return self

    def _take_over(self) -> None:
        """Begin with what is there: in the files, in the pipes, between terminal and file."""
        self._retained.cover()
        self._draw_and_make_room(*self._sources)

    def _exited(self, status: int) -> None:
        self._exit = status
        self._work(self._note_exit)

    def _go_on(self) -> None:
        """Take up drawing again; the loop need not say that what was left is there."""
        if self._step is not None and not self._is_far_ahead():
            self._draw(*self._sources)
        self._make_room()

    def _note_exit(self) -> None:
        if self._is_drawing or self._step is not None:
            self._draw(*self._sources)  # what it said before its end comes before its end
        else:
            self._note_end()

    def _work(self, step: Callable[[], None]) -> None:
        """Do one step and tell of what it brought; if the disk refuses, try again later."""
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
        """Keep no descriptor of a process whose exit and end of output are in the index."""
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
        """Move what they hold into their files and then into the index, and note an end."""
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
        """Move what a source holds; its file is made once there is something for it."""
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
        """Drop the oldest at the limit; where that is not allowed, draw no more until it is.

        Whoever is told of the output is not left far behind: what it takes then is still at hand,
        and it can take it while we wait. If it does not, drawing goes on, a step at a time.
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
