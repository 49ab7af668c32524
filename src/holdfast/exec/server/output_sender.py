"""Send the events of a session's processes to one connection, in bounded memory.

Theory of operation. Events are not queued: each process has a cursor, the sequence number of the
next event to send, and events are read from the retention files when the connection has room.

    Retention ──notify──▶ DueQueue ──take──▶ read runs from the cursor on ──▶ transport.offer
                             ▲                                                  │ full
                             └── more to send ◀── run() waits in transport.send ◀┘

    cursor:  None (client must catch up first) ──caught_up or timeout──▶ seq ──sent──▶ seq + n

Invariants: events of one process are sent in order, each at most once per connection; at most one
batch is encoded and unsent; output is not dropped until it is sent, or, for a client with flow
control, acknowledged (`Credit`); a process with little output is not delayed by one with much
(`exec.server.scheduler`). After a resume a process is silent until its client has read what it
missed: otherwise notifications would pile up in the client before their turn.

If the record of an event is damaged, the cursor skips to the newest event: the client detects the
gap, reads, and gets the reason.
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

# Of output, which is still in the caches when it is sent.
_BATCH_BYTES = 512 * 2**10
_TURN_BYTES = 2**20
_TAIL = b'"}}'
# Seconds that a client which came back has to ask for what it missed.
_CATCH_UP_LONGEST = 5.0


@dataclass(eq=False)
class _ProcessCursor:
    """Send state of one process.

    Without a cursor the client still has to catch up; notifications start at `begin_seq`, at the
    latest at the time `begin_by`. Without a credit the client has no flow control.
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
        """Protect the events that the client may still need."""
        needed = self.cursor if self.credit is None else self.credit.taken + 1
        if needed is not None:
            self.process.hold.keep_from(needed)


@dataclass(slots=True)
class _Batch:
    """Encoded messages that are not sent yet, and the processes that they are about."""

    room: int = _TURN_BYTES
    messages: list[Text] = field(default_factory=list[Text])
    unsent_bytes: int = 0
    told: list[_ProcessCursor] = field(default_factory=list[_ProcessCursor])


class OutputSender:
    """Sends the events of all processes of a session, in order per process.

    See the module for catching up and flow control.
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
        """Send the events of a process from the first one on."""
        self._watch(process, cursor=1)

    def resume(self, process: ServerProcess) -> None:
        """Send the events of a process once the client has caught up."""
        self._watch(process, cursor=None)

    def caught_up(self, process: ServerProcess, reach: ReadReach) -> None:
        """Take the result of a read; starts notifications if it was the last one."""
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
        """Take an acknowledgement: frees credit, and allows dropping."""
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
        """Stop sending events of a forgotten process."""
        watch = self._watches.get(process.record.process)
        if watch is not None and watch.process is process:
            process.retention.unlisten(watch.notify)
            self._due.drop(watch)
            del self._watches[process.record.process]

    def catch_up_late(self, now: float) -> None:
        """Start notifications of processes that the client has not read in time.

        Such a client does not follow the process, and will not acknowledge.
        """
        for watch in self._watches.values():
            if watch.cursor is None and watch.begin_by <= now:
                watch.credit = None
                self._start(watch)

    def stop(self) -> None:
        """Stop sending: the connection has lost its session or has ended."""
        for watch in self._watches.values():
            watch.process.retention.unlisten(watch.notify)
            watch.process.hold.let_go(after=COME_BACK_LONGEST if watch.credit else 0.0)
        self._watches.clear()
        self._due.clear()

    async def run(self) -> None:
        """Send what did not fit at once, until the transport ends; its reader reports the
        failure.
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
        """Whether there are events or an unsent batch."""
        return bool(self._due) or self._unsent is not None or self._error is not None

    def _tell(self) -> None:
        """Send for one turn, in batches, each encoded and sent before the next.

        One process gets as much of the turn as it can use, while its data is in the CPU caches.
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
        """Send the batch if the transport has room; otherwise it stays first in line."""
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
        """Encode the next events of one process; requeues it if there are more."""
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
            # The gap makes the client read, and the read reports the damage.
            watch.cursor = max(damage.seq + 1, kept.next_seq - 1)
            turn.room -= 1
        if turn.room < begin and watch.cursor < kept.next_seq:
            self._put(watch)

    def _early_exit(self, watch: _ProcessCursor) -> list[bytes]:
        """Return the exit of a process without credit: a client may wait for it without reading."""
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
        """Send in the next iteration of the loop: after the reply that is about to be sent."""
        self._put(watch)
        self._changed.set()

    def _put(self, watch: _ProcessCursor) -> None:
        """Queue a process for its turn."""
        self._due.put(watch, watch.process.retention.next_seq - (watch.cursor or 0))

    def _notify(self, watch: _ProcessCursor) -> None:
        """Send events of a process now, unless others are queued or it has exited.

        Exits come in bursts, and many of them leave in one call.
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
                # The reader of the transport reports its end.
                pass
            except OSError as error:
                self._error = error
            if self._is_behind:
                self._changed.set()


def _written(watch: _ProcessCursor, run: RecordRun, pieces: Pieces) -> list[Text]:
    """Encode a run; output in parts, without copying it."""
    if run.kind is not RecordKind.OUTPUT:
        return [_end_message(watch, run.kind, run.first_seq)]
    head, middle = watch.head, watch.middles[run.stream]
    return [
        (b"%b%d%b" % (head, seq, middle), pybase64.b64encode(piece), _TAIL) for seq, piece in pieces
    ]


def _end_message(watch: _ProcessCursor, kind: RecordKind, seq: int) -> bytes:
    """Encode an exit or close notification."""
    name = watch.process.record.process
    if kind is RecordKind.EXITED:
        status, is_denied = watch.process.exit_code, watch.process.is_denied
        assert status is not None, "what has exited has a status"
        lost = True if watch.process.is_lost else UNSET
        news: object = ExitedNews(name, seq, status, sandbox_denied=is_denied, lost=lost)
        return msgspec.json.encode({"method": "process/exited", "params": news})
    return msgspec.json.encode({"method": "process/closed", "params": ClosedNews(name, seq)})
