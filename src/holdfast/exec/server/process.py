"""One process of a session: its output by number, its input in order, its end.

Guess from how a process ended whether its sandbox was in its way, as Codex does.

Nobody tells for sure: what is refused is refused by the kernel, and what a program makes of that
is its own business. It is used to ask a person, and never to decide anything.
"""

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
from holdfast.exec.failures import KeeperLost, ProcessLost, RequestInvalid, RequestUnfit
from holdfast.exec.keeper.client_loop import KeptProcess
from holdfast.exec.keeper.stdin_loop import StdinWriter
from holdfast.exec.model import Output
from holdfast.exec.output_index import LOST_STATUS, RecordDamaged, RecordKind
from holdfast.exec.protocol import ListedProcess, ReadParams, WriteParams
from holdfast.exec.server.model import ReadAnswer
from holdfast.exec.server.scheduler import (
    UNBOUNDED_BYTES_MAX,
    ProcessProgress,
    ReadReach,
    is_due,
    reach_of,
)
from holdfast.exec.server.state_records import ProcessRecord
from holdfast.exec.storage.retention_loop import Retention
from holdfast.exec.storage.stream_file import piece_memory

# What of a process must not be dropped, for whoever is there or may come back.

COME_BACK_LONGEST = 30.0
"""Seconds that what a client has not taken is kept for it when it, or its server, is gone."""


class OutputHold:
    """One process's output, held for one client at a time."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._needed: int | None = None
        self._until: float | None = None
        self._is_over = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody may still need what the process has said."""
        return self._needed is not None and self._needed < self._retention.next_seq

    @property
    def is_ending(self) -> bool:
        """Whether `tick` will let go of it one day."""
        return self._until is not None

    def keep_from(self, seq: int) -> None:
        """Drop nothing from this event on: somebody is there who may need it."""
        self._until = None
        self._set(seq, is_followed=True)

    def let_go(self, *, after: float) -> None:
        """Drop what finds no room again, so many seconds from now."""
        now = anyio.current_time()
        self._until = now + after
        self._set(self._needed, is_followed=False)
        self.tick(now)

    def tick(self, now: float) -> None:
        """Let go where it is time for that."""
        if self._until is not None and now >= self._until:
            self._until = None
            self._set(None, is_followed=False)

    def end(self) -> None:
        """Change nothing any more: the files are closed."""
        self._is_over = True

    def _set(self, seq: int | None, *, is_followed: bool) -> None:
        self._needed = seq
        if not self._is_over:
            self._retention.keep_from(seq, is_followed=is_followed)


# Answer a read with the output as it is kept, copied as little as possible.


def written_chunks(
    retention: Retention, *, after_seq: int, bytes_max: int
) -> tuple[msgspec.Raw, int | None]:
    """The output after a number and the number of its last piece, None if there is no output.

    The first piece is always there, then those that `bytes_max` has room for.
    """
    parts: list[bytes] = []
    last_seq = None
    heads = [b',"stream":"%b","chunk":"' % stream.encode() for stream in retention.streams]
    count, memory = retention.next_seq, piece_memory()
    for run, pieces in retention.runs(after_seq, bytes_max, count_max=count, memory=memory):
        if run.kind is not RecordKind.OUTPUT:
            continue
        for last_seq, piece in pieces:
            head = b'%b{"seq":%d%b' % (b"," if parts else b"", last_seq, heads[run.stream])
            parts += (head, pybase64.b64encode(piece), b'"}')
    return msgspec.Raw(b"".join((b"[", *parts, b"]"))), last_seq


_SIGNS = (
    b"operation not permitted",
    b"permission denied",
    b"read-only file system",
    b"seccomp",
    b"sandbox",
    b"landlock",
    b"failed to write file",
)
_BAD_CALL = 128 + 31  # SIGSYS


def is_denied(status: int, last_words: bytes) -> bool:
    """Whether a process that was shut in probably failed because it was."""
    if status == 0:
        return False
    said = last_words.lower()
    return status == _BAD_CALL or any(sign in said for sign in _SIGNS)


CONFINED, NOT_CONFINED = "linuxSeccomp", "none"
_LAST_WORDS = 0.5  # seconds in which a killed process's output may still come to its end
_KILLED_STATUS = 128 + signal.SIGKILL
_LAST_EVENTS, _LAST_BYTES = 8, 2**18  # what is looked at for why it failed


class ServerProcess:
    """A process that was started, whether it still runs or not."""

    def __init__(
        self,
        record: ProcessRecord,
        *,
        kept: KeptProcess | None,
        retention: Retention,
        stdin: StdinWriter | None,
    ) -> None:
        self.record, self.retention = record, retention
        self.hold = OutputHold(retention)
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
        except RecordDamaged:
            return False
        words = b"".join(each.data for each in last if isinstance(each, Output))
        return is_denied(kept.exit_status, words)

    @property
    def progress(self) -> ProcessProgress:
        """How far it has come."""
        kept = self.retention
        return ProcessProgress(kept.next_seq, kept.first_retained, kept.exit_seq, kept.closed_seq)

    async def read(self, asked: ReadParams) -> tuple[ReadAnswer, ReadReach]:
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
        except RecordDamaged as damage:
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

    def tick(self, now: float) -> None:
        """Close what was killed a while ago, and note since when it is there, and closed."""
        self.hold.tick(now)
        self.seen_since = now if self.seen_since is None else self.seen_since
        if self.retention.is_closed:
            self.closed_since = now if self.closed_since is None else self.closed_since
        elif self._killed_at is not None and now - self._killed_at >= _LAST_WORDS:
            self.retention.mark_lost(_KILLED_STATUS)

    def mark_lost(self) -> None:
        """Take note that its keeper is gone: nothing follows, and how it ended is not known."""
        if not self.retention.is_closed:
            self.retention.mark_lost(LOST_STATUS)

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
            self.retention.unlisten(news.set)


def decoded(chunk: str) -> bytes:
    """Read base64, and refuse what is none."""
    try:
        return pybase64.b64decode(chunk, validate=True)
    except ValueError as error:
        raise RequestInvalid(reason=str(error)) from error
