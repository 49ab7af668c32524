"""Tell one connection the news of its processes, in bounded memory however slowly it reads.

What is to be told is not queued: for every process there is only the number of its next event,
and events are read back from where they are kept when the connection has room for them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
import msgspec
import pybase64

from holdfast.exec.core.reach import Reach
from holdfast.exec.model import Event, Exited, Output
from holdfast.exec.server.process import Process
from holdfast.exec.wire import Closed as ClosedNews
from holdfast.exec.wire import Exited as ExitedNews
from holdfast.failures import Failure
from holdfast.rpc import Transport

_BATCH_BYTES = 256 * 2**10
_CATCH_UP_LONGEST = 5.0  # seconds that a client which came back has to ask for what it missed


@dataclass(eq=False)
class _Watch:
    """How far the connection has been told about one process.

    While the client still has to catch up there is no cursor: news will begin at `begin_seq`, by
    `begin_by` at the latest.
    """

    process: Process
    cursor: int | None
    begin_seq: int
    begin_by: float
    stir: Callable[[], None] = field(init=False)
    head: bytes = field(init=False)

    def __post_init__(self) -> None:
        name = msgspec.json.encode(self.process.record.process)
        self.head = b'{"method":"process/output","params":{"processId":' + name + b',"seq":'


class Pump:
    """Sends what each process has to tell, in the order of its numbers, one process after another.

    A client that came back first asks for what it missed, process by process. Until it has done
    so nothing is told about that process, or the news would pile up at the client before their
    turn; nor is anything dropped.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._watches: dict[str, _Watch] = {}
        self._due: dict[_Watch, None] = {}
        self._stirred = anyio.Event()

    def begin(self, process: Process) -> None:
        """Tell all about a process, from its first event on."""
        self._watch(process, cursor=1)

    def resume(self, process: Process) -> None:
        """Tell about a process from where the client has caught up to, once it has."""
        self._watch(process, cursor=None)

    def caught_up(self, process: Process, reach: Reach) -> None:
        """Take note of what a read has told, if it is one that the news waits for."""
        watch = self._watches.get(process.record.process)
        if watch is None or watch.process is not process or watch.cursor is not None:
            return
        process.retention.keep_from(reach.next_seq)
        watch.begin_seq = reach.next_seq
        watch.begin_by = anyio.current_time() + _CATCH_UP_LONGEST
        if reach.is_last:
            self._start(watch)

    def catch_up_late(self, now: float) -> None:
        """Begin with the news where the client has not asked for what it missed in time."""
        for watch in self._watches.values():
            if watch.cursor is None and watch.begin_by <= now:
                self._start(watch)

    def stop(self) -> None:
        """Tell nothing more: the connection has lost its session, or is gone."""
        for watch in self._watches.values():
            watch.process.retention.silence(watch.stir)
            watch.process.retention.keep_from(None)
        self._watches.clear()
        self._due.clear()

    async def run(self) -> None:
        """Send until the transport ends; its reader reports that end."""
        with suppress(Failure):
            while True:
                await self._stirred.wait()
                self._stirred = anyio.Event()
                while self._due:
                    await self._tell()

    async def _tell(self) -> None:
        told: list[_Watch] = []
        messages: list[bytes] = []
        size = 0
        while self._due and size < _BATCH_BYTES:
            watch = next(iter(self._due))
            del self._due[watch]
            some = self._messages(watch, _BATCH_BYTES - size)
            size += sum(map(len, some))
            messages += some
            told.append(watch)
        if not messages:
            return
        if not self._transport.offer(messages):
            await self._transport.send(messages)
        for watch in told:
            if self._watches.get(watch.process.record.process) is watch:
                watch.process.retention.keep_from(watch.cursor)
        await anyio.lowlevel.checkpoint()

    def _messages(self, watch: _Watch, bytes_max: int) -> list[bytes]:
        """Write down what comes next about one process, and come back to it if that is not all."""
        kept = watch.process.retention
        if watch.cursor is None:
            return []
        events = kept.events(watch.cursor - 1, bytes_max)
        if events:
            watch.cursor = events[-1].seq + 1
            if watch.cursor < kept.next_seq:
                self._due[watch] = None
        return [_message(watch, event) for event in events]

    def _watch(self, process: Process, *, cursor: int | None) -> None:
        begin_by = anyio.current_time() + _CATCH_UP_LONGEST
        watch = _Watch(process, cursor, process.retention.next_seq, begin_by)
        watch.stir = partial(self._stir, watch)
        name = process.record.process
        if (before := self._watches.get(name)) is not None:
            before.process.retention.silence(before.stir)
            self._due.pop(before, None)
        self._watches[name] = watch
        process.retention.keep_from(process.retention.first_retained)
        process.retention.listen(watch.stir)
        self._stir(watch)

    def _start(self, watch: _Watch) -> None:
        watch.cursor = watch.begin_seq
        watch.process.retention.keep_from(watch.cursor)
        self._stir(watch)

    def _stir(self, watch: _Watch) -> None:
        self._due[watch] = None
        self._stirred.set()


def _message(watch: _Watch, event: Event) -> bytes:
    """Write one event; output by hand, since its base64 needs no second look."""
    name = watch.process.record.process
    if isinstance(event, Output):
        data, stream = pybase64.b64encode(event.data), event.stream.encode()
        return b'%s%d,"stream":"%s","chunk":"%s"}}' % (watch.head, event.seq, stream, data)
    if isinstance(event, Exited):
        news: object = ExitedNews(name, event.seq, event.status)
        return msgspec.json.encode({"method": "process/exited", "params": news})
    return msgspec.json.encode({"method": "process/closed", "params": ClosedNews(name, event.seq)})
