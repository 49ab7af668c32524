"""Write to the standard input of one process: in order, once, and never blocking anybody."""

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
    """What became of a write, in the words of the wire."""

    ACCEPTED = "accepted"
    STDIN_CLOSED = "stdinClosed"


@dataclass(slots=True)
class _Pending:
    write_id: str
    rest: memoryview
    outcome: asyncio.Future[WriteOutcome]
    slot: Slot | None = None


class StdinWriter:
    """The standard input of one process.

    A write is accepted once all of it is in the pipe or the terminal, where it survives us. Each
    is noted when it begins and when it is done: the same id again is not written again, and one
    that a server had begun when it died may or may not have happened.
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
        """The input of a new process, or of one that a former server wrote to, if it has any.

        What was written before is known even if nothing can be written any more, because the
        process has ended and been reaped (None).
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
        """Write this once, after everything before it; waits while the process does not read.

        Raises `OutcomeUnknown` if a server died while it was at it, `InputFull` if too much waits
        already, and a disk failure if it could not be noted. In the latter two cases nothing was
        written. A write whose caller is cancelled goes on.
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
        """End the input after all that is queued: no writer is left, or the terminal says ^D."""
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
        """Let go of the descriptors; what is queued will not be written. May be called again."""
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
        """Write until the process has no room; go on when it has."""
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
        """Write what the process has room for; say whether that was all of it."""
        if first.slot is None:
            first.slot = self._noted_begin(first.write_id)
        while first.rest:
            try:
                first.rest = first.rest[os.write(self._fd, first.rest) :]
            except BlockingIOError:
                return False
            except OSError as error:  # nobody reads it any more, or the terminal is gone
                raise _StdinGone from error
        slot = self._writes.finish(first.slot)
        with suppress(OSError):  # it is written; should we die now, nobody can know, and we say so
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
            first.outcome.exception()  # whoever waited for it may be gone


class _StdinGone(Exception):
    """The process cannot be written to any more."""
