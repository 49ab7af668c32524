"""One process of a session: its output by number, its input in order, its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import msgspec
import pybase64
from msgspec import UNSET

from holdfast.confine import Strength, command_of
from holdfast.exec.core.index import LOST_STATUS
from holdfast.exec.core.reach import UNBOUNDED_BYTES_MAX, Progress, Reach, is_due, reach_of
from holdfast.exec.core.runs import Damaged
from holdfast.exec.core.sandbox_denial import is_denied
from holdfast.exec.failures import KeeperLost, ProcessLost, RequestInvalid, RequestUnfit
from holdfast.exec.keeping_input_loop import Input
from holdfast.exec.kept import Kept
from holdfast.exec.model import Output
from holdfast.exec.retention_loop import Retention
from holdfast.exec.server.hold import Hold
from holdfast.exec.server.model import ReadAnswer
from holdfast.exec.server.page import written_chunks
from holdfast.exec.server.records import ProcessRecord
from holdfast.exec.wire import ListedProcess, ReadParams, WriteParams

CONFINED, NOT_CONFINED = "linuxSeccomp", "none"
_LAST_WORDS = 0.5  # seconds in which a killed process's output may still come to its end
_KILLED_STATUS = 128 + signal.SIGKILL
_LAST_EVENTS, _LAST_BYTES = 8, 2**18  # what is looked at for why it failed


class Process:
    """A process that was started, whether it still runs or not."""

    def __init__(
        self,
        record: ProcessRecord,
        *,
        kept: Kept | None,
        retention: Retention,
        stdin: Input | None,
    ) -> None:
        self.record, self.retention = record, retention
        self.hold = Hold(retention)
        self.closed_since: float | None = None
        self._failure: str | None = None
        self.was_stalled = False
        self.seen_since: float | None = None
        self.has_files = False  # made before it says its first word
        self.undo: Callable[[], None] | None = None  # what is to be done once it has ended
        self.lacks: tuple[str, ...] = ()  # what its sandbox does not do that it should
        self.number = None if kept is None else kept.number  # its limit number, if that is known
        self._kept, self._stdin = kept, stdin
        self._killed_at: float | None = None
        retention.listen(self._finish_if_closed)
        self._finish_if_closed()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self.retention.exit_status is None

    @property
    def is_lost(self) -> bool:
        """Whether it has ended with its keeper, and so nothing knows how."""
        return self.retention.exit_status == LOST_STATUS

    @property
    def exit_code(self) -> int | None:
        """How it ended, as a client is told: one that was lost as one that was killed."""
        return _KILLED_STATUS if self.is_lost else self.retention.exit_status

    @property
    def failure(self) -> str | None:
        """What a client that reads it is told is wrong with it."""
        lost = ProcessLost(process=self.record.process) if self.is_lost else None
        return self._failure if lost is None else lost.user_message

    @property
    def needs_nothing(self) -> bool:
        """Whether it runs and there is nothing about it that had to be seen to by now."""
        kept = self.retention
        return (
            kept.exit_status is None
            and self.has_files
            and self._killed_at is None
            and kept.stalled is None
            and not self.was_stalled
            and not self.hold.is_ending
        )

    @property
    def sandbox_type(self) -> str:
        """How a client is told whether it is shut in."""
        return CONFINED if self.record.sandbox else NOT_CONFINED

    @property
    def is_denied(self) -> bool:
        """Whether it has probably failed because it is shut in."""
        kept = self.retention
        if not self.record.sandbox or not kept.exit_status or self.is_lost:
            return False
        try:
            last = kept.events(max(0, kept.next_seq - 1 - _LAST_EVENTS), _LAST_BYTES)
        except Damaged:
            return False
        words = b"".join(each.data for each in last if isinstance(each, Output))
        return is_denied(kept.exit_status, words)

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        kept = self.retention
        return Progress(kept.next_seq, kept.first_retained, kept.exit_seq, kept.closed_seq)

    async def read(self, asked: ReadParams) -> tuple[ReadAnswer, Reach]:
        """Answer a read, after waiting for something to tell if that was asked for."""
        after = asked.after_seq or 0
        if asked.wait_ms:
            with anyio.move_on_after(asked.wait_ms / 1000):
                await self._wait_due(after)
        kept = self.retention
        limit = UNBOUNDED_BYTES_MAX if asked.max_bytes is None else asked.max_bytes
        room = min(limit, UNBOUNDED_BYTES_MAX)
        try:
            chunks, last = written_chunks(kept, after_seq=after, bytes_max=room)
        except Damaged as damage:
            self._failure = str(damage)
            chunks, last = msgspec.Raw(b"[]"), None
        reach = reach_of(self.progress, last_seq=last, bytes_max=asked.max_bytes)
        result = ReadAnswer(
            failure=self.failure,
            exit_code=self.exit_code if reach.exited else None,
            lost=UNSET if not (reach.exited and self.is_lost) else True,
            next_seq=reach.next_seq,
            exited=reach.exited,
            closed=reach.closed,
            sandbox_denied=reach.exited and self.is_denied,
            first_retained_seq=kept.first_retained,
            has_more=not reach.is_last,
            chunks=chunks,
        )
        return result, reach

    async def write(self, asked: WriteParams) -> str:
        """Write input once for each write id; say whether it could be."""
        data = decoded(asked.chunk)
        if self._stdin is None:
            return "stdinClosed"
        return (await self._stdin.write(asked.write_id, data)).value

    async def close_stdin(self) -> None:
        """Tell it that no more input comes, after what was written before."""
        if self._stdin is not None:
            await self._stdin.close()

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of its terminal."""
        if not self.record.tty:
            raise RequestUnfit(reason=f"process {self.record.process} has no terminal")
        if self._kept is not None and self.is_running:
            self._kept.resize(rows, cols)

    async def signal(self, number: int) -> None:
        """Send a signal to its group; one that has ended gets none.

        Of a process in a sandbox the command inside is meant, and not what shuts it in.
        """
        if self._kept is None or not self.is_running:
            return
        if self.record.sandbox == Strength.FULL and number != signal.SIGKILL:
            first = command_of(self._kept.pid)
            command = None if first is None else command_of(first)
            if command is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(command, number)
                return
        await self._kept.signal(number, group=True)

    async def terminate(self, end_started: Callable[[], Awaitable[None]]) -> None:
        """Kill it with all that it started; its output ends soon after, even if others hold it.

        `end_started` ends everything by mark. It comes first: what a process started is easier to
        find while that process is there.
        """
        if self.is_running:
            self._killed_at = self._killed_at or anyio.current_time()
        await end_started()
        await self.signal(signal.SIGKILL)

    def tend(self, now: float) -> None:
        """Close what was killed a while ago, and note since when it is there, and closed."""
        self.hold.tend(now)
        self.seen_since = now if self.seen_since is None else self.seen_since
        if self.retention.is_closed:
            self.closed_since = now if self.closed_since is None else self.closed_since
        elif self._killed_at is not None and now - self._killed_at >= _LAST_WORDS:
            self.retention.lose(_KILLED_STATUS)

    def lose(self) -> None:
        """Take note that its keeper is gone: nothing follows, and how it ended is not known."""
        if not self.retention.is_closed:
            self.retention.lose(LOST_STATUS)

    async def forget(self) -> None:
        """End it if it runs, and let go of it for ever."""
        if self._kept is not None:
            with suppress(KeeperLost):  # then it is gone already
                await self._kept.forget()
        self.release()

    def release(self) -> None:
        """Let go of it without ending it: another server may go on with it."""
        self.hold.end()
        if self._stdin is not None:
            self._stdin.release()
        self.retention.close()

    def listed(self) -> ListedProcess:
        """Say what is known about it."""
        kept, record = self.retention, self.record
        return ListedProcess(
            process_id=record.process,
            argv=record.argv,
            pid=0 if self._kept is None else self._kept.pid,
            tty=record.tty,
            started_at_ms=record.started_at_ms,
            next_seq=kept.next_seq,
            exited=kept.exit_status is not None,
            exit_code=self.exit_code,
            closed=kept.is_closed,
            stalled=kept.waits_for,
            lost=self.is_lost,
        )

    def _finish_if_closed(self) -> None:
        """Keep only the record once exit and end of output are in the index.

        The keeper reaps the process. Should this server be killed first, the keeper still holds
        it, and the next server gets here again.
        """
        if self.retention.is_closed:
            kept, self._kept = self._kept, None
            if kept is not None:
                kept.reap()
            if self._stdin is not None:
                self._stdin.release()

    async def _wait_due(self, after: int) -> None:
        while not is_due(self.progress, after_seq=after):
            await self._wait_news()

    async def _wait_news(self) -> None:
        news = anyio.Event()
        self.retention.listen(news.set)
        try:
            await news.wait()
        finally:
            self.retention.silence(news.set)


def decoded(chunk: str) -> bytes:
    """Read base64, and refuse what is none."""
    try:
        return pybase64.b64decode(chunk, validate=True)
    except ValueError as error:
        raise RequestInvalid(reason=str(error)) from error
