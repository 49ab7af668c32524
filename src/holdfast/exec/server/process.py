"""One process of a session: output by sequence number, stdin in order, exit.

`is_denied` guesses from exit status and last output whether the sandbox was the cause, as Codex
does. The guess is used to ask a person, never to decide anything: the kernel does not report why a
program failed.
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

COME_BACK_LONGEST = 30.0
"""Seconds that what a client has not taken is kept for it when it, or its server, is gone."""


class OutputHold:
    """Protects the output of one process against dropping, for one client at a time."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._needed: int | None = None
        self._until: float | None = None
        self._is_over = False

    @property
    def is_wanted(self) -> bool:
        """Whether a client may still need output."""
        return self._needed is not None and self._needed < self._retention.next_seq

    @property
    def is_ending(self) -> bool:
        """Whether the hold ends at a set time."""
        return self._until is not None

    def keep_from(self, seq: int) -> None:
        """Protect events from this one on: a client is connected."""
        self._until = None
        self._set(seq, is_followed=True)

    def let_go(self, *, after: float) -> None:
        """End the protection in `after` seconds."""
        now = anyio.current_time()
        self._until = now + after
        self._set(self._needed, is_followed=False)
        self.tick(now)

    def tick(self, now: float) -> None:
        """End the protection if its time has come."""
        if self._until is not None and now >= self._until:
            self._until = None
            self._set(None, is_followed=False)

    def end(self) -> None:
        """Do nothing from now on: the files are closed."""
        self._is_over = True

    def _set(self, seq: int | None, *, is_followed: bool) -> None:
        self._needed = seq
        if not self._is_over:
            self._retention.keep_from(seq, is_followed=is_followed)


def written_chunks(
    retention: Retention, *, after_seq: int, bytes_max: int
) -> tuple[msgspec.Raw, int | None]:
    """Encode output after a sequence number as JSON chunks; returns the last sequence number too.

    The first piece is always included, then as many as fit into `bytes_max`.
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
    """Whether a sandboxed process probably failed because of its sandbox."""
    if status == 0:
        return False
    said = last_words.lower()
    return status == _BAD_CALL or any(sign in said for sign in _SIGNS)


CONFINED, NOT_CONFINED = "linuxSeccomp", "none"
# Seconds in which a killed process's output may still come to its end.
_LAST_WORDS = 0.5
_KILLED_STATUS = 128 + signal.SIGKILL
# What is looked at for why it failed.
_LAST_EVENTS, _LAST_BYTES = 8, 2**18


class ServerProcess:
    """A started process, running or not."""

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
        # Made before it says its first word.
        self.has_files = False
        # What is to be done once it has ended.
        self.undo: Callable[[], None] | None = None
        # What its sandbox does not do that it should.
        self.lacks: tuple[str, ...] = ()
        # Its limit number, if that is known.
        self.number = None if kept is None else kept.number
        self._kept, self._stdin = kept, stdin
        self._killed_at: float | None = None
        retention.listen(self._finish_if_closed)
        self._finish_if_closed()

    @property
    def is_running(self) -> bool:
        """Whether it has not exited."""
        return self.retention.exit_status is None

    @property
    def is_lost(self) -> bool:
        """Whether it ended with its keeper, so that its exit status is unknown."""
        return self.retention.exit_status == LOST_STATUS

    @property
    def exit_code(self) -> int | None:
        """Exit code for clients; a lost process counts as killed."""
        return _KILLED_STATUS if self.is_lost else self.retention.exit_status

    @property
    def failure(self) -> str | None:
        """The error text for clients that read it."""
        lost = ProcessLost(process=self.record.process) if self.is_lost else None
        return self._failure if lost is None else lost.user_message

    @property
    def needs_nothing(self) -> bool:
        """Whether it runs and no periodic work is due."""
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
        """The sandbox type for clients."""
        return CONFINED if self.record.sandbox else NOT_CONFINED

    @property
    def is_denied(self) -> bool:
        """Whether it probably failed because of its sandbox."""
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
        """Its sequence numbers so far."""
        kept = self.retention
        return ProcessProgress(kept.next_seq, kept.first_retained, kept.exit_seq, kept.closed_seq)

    async def read(self, asked: ReadParams) -> tuple[ReadAnswer, ReadReach]:
        """Return retained output; waits for events if requested."""
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
        """Write to stdin once per write id; returns the status."""
        data = decoded(asked.chunk)
        if self._stdin is None:
            return "stdinClosed"
        return (await self._stdin.write(asked.write_id, data)).value

    async def close_stdin(self) -> None:
        """Close stdin after earlier writes."""
        if self._stdin is not None:
            await self._stdin.close()

    def resize(self, rows: int, cols: int) -> None:
        """Set the terminal size."""
        if not self.record.tty:
            raise RequestUnfit(reason=f"process {self.record.process} has no terminal")
        if self._kept is not None and self.is_running:
            self._kept.resize(rows, cols)

    async def signal(self, number: int) -> None:
        """Signal its process group; ignored after its exit.

        In a sandbox the command inside is signalled, not the sandbox process.
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
        """Kill it and its descendants; its output ends soon after, even if others hold the pipe.

        `end_started` ends everything by mark, and runs first: descendants are easier to find while
        their ancestor exists.
        """
        if self.is_running:
            self._killed_at = self._killed_at or anyio.current_time()
        await end_started()
        await self.signal(signal.SIGKILL)

    def tick(self, now: float) -> None:
        """Close the output of a killed process after a delay, and track since when it is closed."""
        self.hold.tick(now)
        self.seen_since = now if self.seen_since is None else self.seen_since
        if self.retention.is_closed:
            self.closed_since = now if self.closed_since is None else self.closed_since
        elif self._killed_at is not None and now - self._killed_at >= _LAST_WORDS:
            self.retention.mark_lost(_KILLED_STATUS)

    def mark_lost(self) -> None:
        """Record that its keeper is gone: the exit status is unknown."""
        if not self.retention.is_closed:
            self.retention.mark_lost(LOST_STATUS)

    async def forget(self) -> None:
        """Kill it if it runs, and release it for good."""
        if self._kept is not None:
            with suppress(KeeperLost):  # then it is gone already
                await self._kept.forget()
        self.release()

    def release(self) -> None:
        """Close its descriptors without ending it: another server may adopt it."""
        self.hold.end()
        if self._stdin is not None:
            self._stdin.release()
        self.retention.close()

    def listed(self) -> ListedProcess:
        """Return its entry for a listing."""
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
        """Let the keeper reap it once exit and close are in the index.

        If this server is killed first, the keeper still holds the process, and the next server gets
        here again.
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
    """Decode base64; raises `RequestInvalid`."""
    try:
        return pybase64.b64decode(chunk, validate=True)
    except ValueError as error:
        raise RequestInvalid(reason=str(error)) from error
