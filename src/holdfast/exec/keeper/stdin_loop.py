"""Write to the stdin of one process: in order, at most once per write id, without blocking."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from holdfast.exec.failures import InputFull, OutcomeUnknown
from holdfast.exec.keeper.client_loop import KeptProcess
from holdfast.exec.keeper.write_ids import SLOT_BYTES, SLOTS, Slot, WriteLog, WriteState
from holdfast.failures import Failure
from holdfast.world import disk_failure

PENDING_MAX, PENDING_BYTES_MAX = 1024, 16 * 2**20

_END_OF_TRANSMISSION = b"\x04"


class WriteOutcome(StrEnum):
    """Result of a write, as on the wire."""

    ACCEPTED = "accepted"
    STDIN_CLOSED = "stdinClosed"


@dataclass(slots=True)
class _Pending:
    write_id: str
    rest: memoryview
    outcome: asyncio.Future[WriteOutcome]
    slot: Slot | None = None


class StdinWriter:
    """The stdin of one process, with a queue of writes.

    A write is accepted once all of it is in the pipe or terminal, where it survives us. Its begin
    and end are recorded: a repeated id is not written again, and one that a server had begun when
    it died has an unknown outcome.
    """

    def __init__(self, file: int, kept: KeptProcess | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._file, self._kept = file, kept
        self._writes = WriteLog(os.pread(file, SLOTS * SLOT_BYTES, 0))
        fd = None
        if kept is not None:
            fd = kept.copy("pty") if kept.is_terminal else kept.take("stdin")
        self._fd = -1 if fd is None else fd
        if fd is not None:
            os.set_blocking(fd, False)
        self._pending: deque[_Pending] = deque()
        self._pending_bytes = 0

    @classmethod
    def open(cls, directory: Path, kept: KeptProcess | None) -> Self | None:
        """Open the stdin of a new or adopted process; None if it has none.

        Write ids of an exited and reaped process (None) are still known.
        """
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            file = os.open(f"{directory}/writes", flags)
        except FileNotFoundError:
            if kept is None or not kept.takes_input:
                return None
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(f"{directory}/writes", flags | os.O_CREAT, 0o600)
        try:
            return cls(file, kept)
        except OSError:
            os.close(file)
            raise

    async def write(self, write_id: str, data: bytes) -> WriteOutcome:
        """Write data once, after all queued writes; waits while the process does not read.

        Raises `OutcomeUnknown` if a server died during this write, `InputFull` if the queue is
        full, and a disk failure if the write id could not be recorded; in the latter two cases
        nothing was written. Cancelling the caller does not cancel the write.
        """
        if found := next((each for each in self._pending if each.write_id == write_id), None):
            return await asyncio.shield(found.outcome)
        match self._writes.look(write_id):
            case WriteState.DONE:
                return WriteOutcome.ACCEPTED
            case WriteState.BEGUN:
                raise OutcomeUnknown(method="process/write")
            case None:
                return await asyncio.shield(self._queued(write_id, data))

    async def close(self) -> None:
        """Close stdin after the queue: EOF for a pipe, ^D for a terminal."""
        if self._pending:
            await asyncio.wait([self._pending[-1].outcome])
        if self._kept is None:
            return
        if self._kept.is_terminal:
            await asyncio.shield(self._queued("", _END_OF_TRANSMISSION))
        else:
            self._let_go()
            await self._kept.close_stdin()

    def release(self) -> None:
        """Close the descriptors and drop the queue; idempotent."""
        self._let_go()
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _queued(self, write_id: str, data: bytes) -> asyncio.Future[WriteOutcome]:
        outcome: asyncio.Future[WriteOutcome] = self._loop.create_future()
        if self._fd < 0:
            outcome.set_result(WriteOutcome.STDIN_CLOSED)
            return outcome
        if len(self._pending) >= PENDING_MAX or self._pending_bytes >= PENDING_BYTES_MAX:
            assert self._kept is not None, "only a process that is held has an input"
            raise InputFull(process=self._kept.key, pending_bytes=self._pending_bytes)
        self._pending.append(_Pending(write_id, memoryview(data), outcome))
        self._pending_bytes += len(data)
        if len(self._pending) == 1:
            self._flush()
        return outcome

    def _flush(self) -> None:
        """Write until the pipe is full; the event loop continues."""
        while self._pending:
            first = self._pending[0]
            try:
                if not self._push(first):
                    self._loop.add_writer(self._fd, self._flush)
                    return
                self._settle(WriteOutcome.ACCEPTED)
            except _StdinGone:
                self._let_go()
                return
            except OSError as error:
                self._settle(disk_failure(error, path="writes"))
        self._loop.remove_writer(self._fd)

    def _push(self, first: _Pending) -> bool:
        """Write what fits; returns whether the whole write is done."""
        if first.slot is None:
            first.slot = self._noted_begin(first.write_id)
        while first.rest:
            try:
                first.rest = first.rest[os.write(self._fd, first.rest) :]
            except BlockingIOError:
                return False
            except OSError as error:
                # The read end is closed, or the terminal is gone.
                raise _StdinGone from error
        slot = self._writes.finish(first.slot)
        # The data is written. If we die now the outcome is unknown, which is what the log says.
        with suppress(OSError):
            os.pwrite(self._file, slot.pack(), slot.offset)
        return True

    def _noted_begin(self, write_id: str) -> Slot:
        slot = self._writes.begin(write_id)
        try:
            os.pwrite(self._file, slot.pack(), slot.offset)
        except OSError:
            self._writes.withdraw(slot)
            raise
        return slot

    def _let_go(self) -> None:
        if self._fd >= 0:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
        self._fd = -1
        while self._pending:
            self._settle(WriteOutcome.STDIN_CLOSED)

    def _settle(self, outcome: WriteOutcome | Failure) -> None:
        first = self._pending.popleft()
        self._pending_bytes = sum(len(each.rest) for each in self._pending)
        if isinstance(outcome, WriteOutcome):
            first.outcome.set_result(outcome)
        else:
            first.outcome.set_exception(outcome)
            # Marks the exception as retrieved: its waiter may have been cancelled.
            first.outcome.exception()


class _StdinGone(Exception):
    """The read end of stdin is closed."""
