"""Tell one connection the news of its processes, in bounded memory however slowly it reads.

What is to be told is not queued: for every process there is only the number of its next event,
and events are read back from where they are kept when the connection has room for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
import msgspec
import pybase64
from msgspec import UNSET

from holdfast.exec.flow_control import EVENTS_MAX, Credit
from holdfast.exec.output_index import RECORD_BYTES, Pieces, RecordDamaged, RecordKind, RecordRun
from holdfast.exec.protocol import Closed as ClosedNews
from holdfast.exec.protocol import Exited as ExitedNews
from holdfast.exec.server.error_replies import ErrorReplyTransport, Text
from holdfast.exec.server.process import COME_BACK_LONGEST, ServerProcess
from holdfast.exec.server.scheduler import DueQueue, ReadReach
from holdfast.exec.storage.stream_file import piece_memory
from holdfast.failures import Failure

_BATCH_BYTES = 512 * 2**10  # of output, which is still in the caches when it is sent
_TURN_BYTES = 2**20
_TAIL = b'"}}'
_CATCH_UP_LONGEST = 5.0  # seconds that a client which came back has to ask for what it missed


@dataclass(eq=False)
class _ProcessCursor:
    """How far the connection has been told about one process.

    While the client still has to catch up there is no cursor: news will begin at `begin_seq`, by
    `begin_by` at the latest. Without a credit it says nothing about what it has taken.
    """

    process: ServerProcess
    cursor: int | None
    begin_seq: int
    begin_by: float
    credit: Credit | None
    is_exit_told: bool = False
    notify: Callable[[], None] = field(init=False)
    head: bytes = field(init=False)
    middles: list[bytes] = field(init=False)  # for each stream

    def __post_init__(self) -> None:
        name = msgspec.json.encode(self.process.record.process)
        self.head = b'{"method":"process/output","params":{"processId":' + name + b',"seq":'
        streams = self.process.retention.streams
        self.middles = [b',"stream":"%b","chunk":"' % stream.encode() for stream in streams]

    def keep(self) -> None:
        """Let nothing be dropped that the client may still need."""
        needed = self.cursor if self.credit is None else self.credit.taken + 1
        if needed is not None:
            self.process.hold.keep_from(needed)


@dataclass(slots=True)
class _Batch:
    """What is told in one go: what was not sent of it yet, and whom all of it is about."""

    room: int = _TURN_BYTES
    messages: list[Text] = field(default_factory=list[Text])
    unsent_bytes: int = 0
    told: list[_ProcessCursor] = field(default_factory=list[_ProcessCursor])


class OutputSender:
    """Sends what each process has to tell, in the order of its numbers, one process after another.

    A client that came back first asks for what it missed, process by process. Until it has done
    so nothing is told about that process, or the news would pile up at the client before their
    turn; nor is anything dropped.

    A client that has said how much it holds unread (`unread_bytes_max`) is told so much of each
    process and no more until it has taken of it, and what it has not taken is not dropped.
    """

    def __init__(self, transport: ErrorReplyTransport) -> None:
        self.unread_bytes_max: int | None = None
        self._transport, self._memory = transport, piece_memory()
        self._watches: dict[str, _ProcessCursor] = {}
        self._due = DueQueue[_ProcessCursor]()
        self._changed = anyio.Event()
        self._is_telling = False
        self._unsent: _Batch | None = None
        self._error: OSError | None = None

    def begin(self, process: ServerProcess) -> None:
        """Tell all about a process, from its first event on."""
        self._watch(process, cursor=1)

    def resume(self, process: ServerProcess) -> None:
        """Tell about a process from where the client has caught up to, once it has."""
        self._watch(process, cursor=None)

    def caught_up(self, process: ServerProcess, reach: ReadReach) -> None:
        """Take note of what a read has told, if it is one that the news waits for."""
        watch = self._watches.get(process.record.process)
        if watch is None or watch.process is not process or watch.cursor is not None:
            return
        if watch.credit is None:
            process.hold.keep_from(reach.next_seq)
        watch.begin_seq = reach.next_seq
        watch.begin_by = anyio.current_time() + _CATCH_UP_LONGEST
        if reach.is_last:
            self._start(watch)

    def taken(self, name: str, seq: int) -> None:
        """Take note that the client needs nothing of a process up to an event any more."""
        watch = self._watches.get(name)
        if watch is None or self.unread_bytes_max is None:
            return
        seq = min(seq, watch.process.retention.next_seq - 1)
        watch.credit = watch.credit or Credit(self.unread_bytes_max)
        watch.credit.take(seq)
        watch.cursor = max(watch.begin_seq if watch.cursor is None else watch.cursor, seq + 1)
        watch.keep()
        self._notify(watch)

    def forget(self, process: ServerProcess) -> None:
        """Tell nothing more about a process that the client has forgotten."""
        watch = self._watches.get(process.record.process)
        if watch is not None and watch.process is process:
            process.retention.unlisten(watch.notify)
            self._due.drop(watch)
            del self._watches[process.record.process]

    def catch_up_late(self, now: float) -> None:
        """Begin with the news where the client has not asked for what it missed in time.

        It follows that process no longer, and will take nothing of it.
        """
        for watch in self._watches.values():
            if watch.cursor is None and watch.begin_by <= now:
                watch.credit = None
                self._start(watch)

    def stop(self) -> None:
        """Tell nothing more: the connection has lost its session, or is gone."""
        for watch in self._watches.values():
            watch.process.retention.unlisten(watch.notify)
            watch.process.hold.let_go(after=COME_BACK_LONGEST if watch.credit else 0.0)
        self._watches.clear()
        self._due.clear()

    async def run(self) -> None:
        """Tell what could not be told at once, until the transport ends; its reader reports that.

        That is what it had no room for, and what is more than a turn.
        """
        with suppress(Failure):
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                while self._is_behind:
                    if self._error is not None:
                        raise self._error
                    if (turn := self._unsent) is not None:
                        await self._transport.send(turn.messages)
                        self._unsent = None
                        self._keep(turn.told)
                    self._tell()
                    await anyio.lowlevel.checkpoint()

    @property
    def _is_behind(self) -> bool:
        """Whether there is something to tell that waits for its turn."""
        return bool(self._due) or self._unsent is not None or self._error is not None

    def _tell(self) -> None:
        """Tell for one turn, in batches, each of which is written and sent before the next.

        Of one process all is told that the turn has room for: what belongs to it is at hand then.
        """
        turn, self._is_telling = _Batch(), True
        try:
            while self._due and turn.room > 0 and self._unsent is None:
                is_first_half = turn.room > _TURN_BYTES // 2
                self._write(self._due.take(is_first_half=is_first_half), turn)
            if self._unsent is None and self._sent(turn):
                self._keep(turn.told)
        finally:
            self._is_telling = False

    def _sent(self, turn: _Batch) -> bool:
        """Send what is written, if there is room for it; if there is none, it comes first."""
        if turn.messages and not self._transport.offer(turn.messages):
            self._unsent = turn
            return False
        turn.messages, turn.unsent_bytes = [], 0
        return True

    def _keep(self, told: Iterable[_ProcessCursor]) -> None:
        for watch in told:
            if self._watches.get(watch.process.record.process) is watch:
                watch.keep()

    def _write(self, watch: _ProcessCursor, turn: _Batch) -> None:
        """Write down what comes next about one process, and come back to it if that is not all."""
        kept, credit, begin = watch.process.retention, watch.credit, turn.room
        if watch.cursor is None:
            return
        turn.told.append(watch)
        room, count = turn.room, EVENTS_MAX
        if credit is not None:
            room, count = min(room, credit.bytes_left), credit.events_left
            if not room:
                turn.messages += self._early_exit(watch)
                return
        try:
            after, memory = watch.cursor - 1, self._memory
            for run, pieces in kept.runs(after, room, count_max=count, memory=memory):
                turn.messages += _written(watch, run, pieces)
                if credit is not None:
                    credit.tell(run.first_seq, run.lengths)
                size = run.size + len(run.lengths) * RECORD_BYTES
                turn.room -= size
                turn.unsent_bytes += size
                watch.cursor = run.last_seq + 1
                if turn.unsent_bytes >= _BATCH_BYTES and not self._sent(turn):
                    break
        except RecordDamaged as damage:
            # Who is told only of the last asks for what is missing, and learns why it is.
            watch.cursor = max(damage.seq + 1, kept.next_seq - 1)
            turn.room -= 1
        if turn.room < begin and watch.cursor < kept.next_seq:
            self._put(watch)

    def _early_exit(self, watch: _ProcessCursor) -> list[bytes]:
        """The end of a process whose output nobody takes: who waits for it need not read all."""
        seq = watch.process.retention.exit_seq
        if seq is None or watch.is_exit_told or (watch.cursor or 0) > seq:
            return []
        watch.is_exit_told = True
        return [_end_message(watch, RecordKind.EXITED, seq)]

    def _watch(self, process: ServerProcess, *, cursor: int | None) -> None:
        begin_by = anyio.current_time() + _CATCH_UP_LONGEST
        first, limit = process.retention.first_retained, self.unread_bytes_max
        credit = None if limit is None else Credit(limit, taken=first - 1)
        watch = _ProcessCursor(process, cursor, process.retention.next_seq, begin_by, credit)
        watch.notify = partial(self._notify, watch)
        name = process.record.process
        if (before := self._watches.get(name)) is not None:
            before.process.retention.unlisten(before.notify)
            self._due.drop(before)
        self._watches[name] = watch
        process.hold.keep_from(first)
        process.retention.listen(watch.notify)
        self._put_off(watch)

    def _start(self, watch: _ProcessCursor) -> None:
        watch.cursor = watch.begin_seq
        watch.keep()
        self._put_off(watch)

    def _put_off(self, watch: _ProcessCursor) -> None:
        """Tell about it in the next pass of the loop: after what is about to be answered."""
        self._put(watch)
        self._changed.set()

    def _put(self, watch: _ProcessCursor) -> None:
        """Tell about it in its turn."""
        self._due.put(watch, watch.process.retention.next_seq - (watch.cursor or 0))

    def _notify(self, watch: _ProcessCursor) -> None:
        """Tell about it now, unless others are still to be told about, or it has ended.

        Ends come in bunches, and many of them leave in one call.
        """
        if not watch.process.is_running:
            self._put_off(watch)
            return
        is_next = not self._is_telling and not self._is_behind
        self._put(watch)
        if is_next:
            try:
                self._tell()
            except Failure:
                pass  # whoever reads from the transport reports its end
            except OSError as error:
                self._error = error
            if self._is_behind:
                self._changed.set()


def _written(watch: _ProcessCursor, run: RecordRun, pieces: Pieces) -> list[Text]:
    """Write what a run tells; output by hand and in parts, since nobody needs a copy of it."""
    if run.kind is not RecordKind.OUTPUT:
        return [_end_message(watch, run.kind, run.first_seq)]
    head, middle = watch.head, watch.middles[run.stream]
    return [
        (b"%b%d%b" % (head, seq, middle), pybase64.b64encode(piece), _TAIL) for seq, piece in pieces
    ]


def _end_message(watch: _ProcessCursor, kind: RecordKind, seq: int) -> bytes:
    """Write that a process has exited or closed."""
    name = watch.process.record.process
    if kind is RecordKind.EXITED:
        status, is_denied = watch.process.exit_code, watch.process.is_denied
        assert status is not None, "what has exited has a status"
        lost = True if watch.process.is_lost else UNSET
        news: object = ExitedNews(name, seq, status, sandbox_denied=is_denied, lost=lost)
        return msgspec.json.encode({"method": "process/exited", "params": news})
    return msgspec.json.encode({"method": "process/closed", "params": ClosedNews(name, seq)})
