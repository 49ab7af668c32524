"""Handle of a process on a server: events, stdin, signals; survives lost connections."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import pybase64

from holdfast.exec.client.connection import Channel, ClientSession
from holdfast.exec.client.events import EventSequence, read_page, refused
from holdfast.exec.failures import (
    CapabilityMissing,
    ProcessLost,
    ProcessUnknown,
    ReplayGap,
    StdinClosed,
)
from holdfast.exec.flow_control import Acknowledgements
from holdfast.exec.model import Command, Event, Exited, Page
from holdfast.exec.protocol import (
    ProcessParams,
    ReadParams,
    ReadResult,
    ResizeParams,
    SignalParams,
    TakenParams,
    TerminateResult,
    WireStruct,
    WriteParams,
    WriteResult,
)
from holdfast.failures import Failure
from holdfast.rpc import Connection
from holdfast.rpc.failures import ConnectionClosed, ErrorResponse

Ask = Callable[[ReadParams], Awaitable[ReadResult]]

PAGE_BYTES_MAX = 1024 * 1024
# What is merely out of order is there by then.
_REORDERED_LONGEST = 0.05


class EventFeed:
    """Events of one process, from notifications and, if behind, from reads.

    A slow reader buffers no more than the sequence holds; the rest stays with the server and is
    read when there is room. A server with flow control gets acknowledgements and retains the rest;
    on others dropped output is a gap, which ends this process alone.
    """

    def __init__(self, sequence: EventSequence, channel: Channel, session: ClientSession) -> None:
        self.process = sequence.process
        self.is_started = False
        self._channel, self._session = channel, session
        self._sequence, self._receipts = sequence, Acknowledgements()
        self._changed = anyio.Event()
        self._is_reading_on = self._is_acknowledging = False
        self._is_terminated = False
        # No caller has read its events.
        self._is_unread = True
        # And a caller has waited for its exit.
        self._is_awaited = False
        self._failure: Failure | None = None

    @property
    def status(self) -> int | None:
        """The exit status, once it is known."""
        return self._sequence.status

    @property
    def is_over(self) -> bool:
        """Whether the server is not needed any more for this process."""
        return self._sequence.is_complete or self._is_terminated

    def live(self, event: Event) -> None:
        """Take one notification."""
        if self._failure is None:
            self._sequence.live(event)
            self._notify()
            if self._is_awaited:
                self._acknowledge_soon()

    def fail(self, failure: Failure) -> None:
        """Pass on the events in order, then this failure; the first one counts."""
        if self._failure is None and not self._sequence.is_complete:
            self._failure = failure
            self._notify()

    async def receive(self) -> list[Event]:
        """Wait for the events since the last call; empty after the close.

        Raises `ProcessLost` after the last output of a process whose exit status is unknown.
        """
        self._is_unread = self._is_awaited = False
        while not (ready := self._taken()) and not (
            self._sequence.is_finished and self._failure is None
        ):
            if self._failure is not None:
                raise copy(self._failure)
            await self._changed.wait()
        if self._receipts.take(ready, self._session.untaken_bytes_max) or (
            ready and self._sequence.is_finished
        ):
            self._acknowledge_soon()
        self._read_on_if_behind()
        return ready

    async def wait_status(self) -> int:
        """Wait for the exit status, whether or not the events are read."""
        while self._sequence.status is None:
            if self._failure is not None or self._sequence.is_lost:
                raise copy(self._failure or ProcessLost(process=self.process))
            await self._changed.wait()
        if self._is_unread and not self._is_awaited:
            self._is_awaited = True
            self._acknowledge_soon()
        return self._sequence.status

    async def catch_up(self, ask: Ask) -> None:
        """Read all missed events, as far as there is room; a gap fails the process."""
        is_first = True
        while self._failure is None and not self.is_over:
            if not is_first and not (self._sequence.is_behind and self._sequence.has_room):
                return
            is_first = False
            await self._read_page(ask)

    async def ask(self, params: ReadParams) -> ReadResult:
        """Read on whichever connection the channel has."""
        return await self._channel.call("process/read", params, ReadResult, repeats=True)

    async def acknowledge(self, connection: Connection) -> None:
        """Acknowledge the consumed events, if the server has flow control."""
        if self._session.untaken_bytes_max is not None and not self._is_terminated:
            seq = self._sequence.told if self._is_awaited else self._sequence.taken
            await connection.notify("process/taken", TakenParams(self.process, seq))

    def forget(self) -> None:
        """Mark the process as forgotten by the server."""
        self._is_terminated = True
        self.fail(ProcessUnknown(process=self.process))

    async def terminate(self) -> None:
        """Terminate the process at the server, whatever its state here."""
        with suppress(Failure):
            await self._channel.call(
                "process/terminate", ProcessParams(self.process), TerminateResult, repeats=True
            )
        self._is_terminated = True

    def _taken(self) -> list[Event]:
        ready = self._sequence.take()
        for place, event in enumerate(ready):
            if isinstance(event, Exited) and event.is_lost:
                self._failure = ProcessLost(process=self.process)
                return ready[:place]
        return ready

    async def _read_page(self, ask: Ask) -> None:
        pages = self._session.capabilities.first_retained_seq
        params = ReadParams(
            self.process,
            after_seq=self._sequence.known,
            max_bytes=PAGE_BYTES_MAX if pages else None,
            wait_ms=0,
        )
        try:
            page = read_page(params, await ask(params))
            self._sequence.replay(page)
        except ErrorResponse as error:
            raise refused(error, subject=self.process) from error
        except ReplayGap as gap:
            self.fail(gap)
            self._channel.start_soon(self.terminate)
        self._notify()

    def _acknowledge_soon(self) -> None:
        if not self._is_acknowledging:
            self._is_acknowledging = True
            self._channel.start_soon(self._acknowledge)

    async def _acknowledge(self) -> None:
        """Send an acknowledgement; if the connection breaks, the next one gets it anyway."""
        with suppress(Failure):
            connection = await self._channel.wait_connected()
            self._is_acknowledging = False
            await self.acknowledge(connection)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
        self._read_on_if_behind()

    def _read_on_if_behind(self) -> None:
        wants_more = self._sequence.is_behind and self._sequence.has_room
        if wants_more and not self._is_reading_on and self._failure is None:
            self._is_reading_on = True
            self._channel.start_soon(self._read_on)

    async def _read_on(self) -> None:
        """Read what notifications did not bring, until they are in order again."""
        try:
            if not self._sequence.must_read:
                await anyio.sleep(_REORDERED_LONGEST)
            if self._sequence.is_behind:
                await self.catch_up(self.ask)
        except Failure as failure:
            self.fail(failure)
        finally:
            self._is_reading_on = False
        self._read_on_if_behind()


WAITING_BYTES_MAX = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_STARTING_PAUSE = 0.02


@dataclass(eq=False, slots=True)
class _Piece:
    """One write, or the close, in the queue."""

    data: bytes | None
    is_begun: bool = False
    settled: anyio.Event = field(default_factory=anyio.Event)
    failure: Failure | None = None


class Stdin:
    """Writes pieces in order; once one fails, so do all after it.

    A piece in flight when the connection is lost is sent again under its write id, which the server
    writes once. A cancelled caller withdraws its piece whole, or not at all once it has begun.
    """

    def __init__(self, process: str, channel: Channel, *, mark: str) -> None:
        self._process, self._channel, self._mark = process, channel, mark
        self._waiting: deque[_Piece] = deque()
        self._waiting_bytes = 0
        self._room = anyio.Event()
        self._written = 0
        self._failure: Failure | None = None

    @property
    def has_room(self) -> bool:
        """Whether the queue has room."""
        return self._waiting_bytes < WAITING_BYTES_MAX

    def put(self, data: bytes) -> None:
        """Queue data; raises if stdin has failed."""
        self._add(_Piece(data))

    async def wait_room(self) -> None:
        """Wait until the queue has room; raises if stdin has failed."""
        while not self.has_room and self._failure is None:
            await self._room.wait()
        if self._failure is not None:
            raise copy(self._failure)

    async def write(self, data: bytes) -> None:
        """Write data; returns once the server has accepted all of it."""
        await self.wait_room()
        await self._settled(_Piece(data))

    async def close(self) -> None:
        """Close stdin after all queued data."""
        await self._settled(_Piece(None))

    async def flushed(self) -> None:
        """Wait until the queue is empty; raises if stdin has failed."""
        while self._waiting:
            await self._waiting[-1].settled.wait()
        if self._failure is not None:
            raise copy(self._failure)

    async def _settled(self, piece: _Piece) -> None:
        self._add(piece)
        try:
            await piece.settled.wait()
        finally:
            if not piece.is_begun and not piece.settled.is_set():
                self._waiting.remove(piece)
                self._forget(piece)
        if piece.failure is not None:
            raise copy(piece.failure)

    def _add(self, piece: _Piece) -> None:
        failure = self._failure or self._channel.failure
        if failure is not None:
            raise copy(failure)
        self._waiting.append(piece)
        self._waiting_bytes += len(piece.data or b"")
        if len(self._waiting) == 1:
            self._channel.start_soon(self._write_all)

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                pieces = self._next_pieces()
                failure = self._failure or await self._outcome(pieces)
                if failure is None and pieces[0].data is None:
                    self._failure = StdinClosed(process=self._process)
                self._failure = self._failure or failure
                for _ in pieces:
                    self._settle(self._waiting.popleft(), failure)
        finally:
            while self._waiting:  # the client was closed
                closed = self._channel.failure or ConnectionClosed(reason="closed by us")
                self._settle(self._waiting.popleft(), closed)

    def _next_pieces(self) -> list[_Piece]:
        """Return as many pieces as fit into one request, at least one; a close is sent alone."""
        pieces: list[_Piece] = []
        size = 0
        for piece in self._waiting:
            size += len(piece.data or b"")
            if pieces and (piece.data is None or size > _CHUNK_BYTES):
                break
            piece.is_begun = True
            pieces.append(piece)
            if piece.data is None:
                break
        return pieces

    async def _outcome(self, pieces: list[_Piece]) -> Failure | None:
        try:
            if pieces[0].data is None:
                params = ProcessParams(self._process)
                await self._channel.call("process/closeStdin", params, dict[str, object])
            else:
                data = b"".join(piece.data or b"" for piece in pieces)
                for first in range(0, len(data), _CHUNK_BYTES):
                    await self._write_chunk(data[first : first + _CHUNK_BYTES])
        except ErrorResponse as error:
            return refused(error, subject=self._process)
        except Failure as failure:
            return failure
        return None

    async def _write_chunk(self, data: bytes) -> None:
        self._written += 1
        chunk = pybase64.b64encode_as_string(data)
        params = WriteParams(self._process, chunk, f"{self._mark}-{self._written}")
        status = "starting"
        while status == "starting":
            answer = await self._channel.call("process/write", params, WriteResult, repeats=True)
            status = answer.status
            if status == "starting":
                await anyio.sleep(_STARTING_PAUSE)
        match status:
            case "accepted":
                return
            case "unknownProcess":
                raise ProcessUnknown(process=self._process)
            case _:
                raise StdinClosed(process=self._process)

    def _settle(self, piece: _Piece, failure: Failure | None) -> None:
        self._forget(piece)
        piece.failure = failure
        piece.settled.set()

    def _forget(self, piece: _Piece) -> None:
        self._waiting_bytes -= len(piece.data or b"")
        self._room.set()
        self._room = anyio.Event()


Result = TypeVar("Result")


class Process:
    """One process, from its start to its close, over any number of connections.

    Its events have one reader. A change in flight when the connection is lost is not retried:
    `OutcomeUnknown` is raised.
    """

    def __init__(
        self,
        command: Command,
        feed: EventFeed,
        channel: Channel,
        session: ClientSession,
        *,
        writer: str = "",
    ) -> None:
        """`writer` distinguishes write ids of several clients of one process."""
        self.command = command
        # Its start was found to have happened after a cut.
        self.was_continued = False
        # `full` or `reduced` of one that is shut in, where that is said.
        self.sandbox_strength = ""
        # What that does not do that it should.
        self.sandbox_lacks: tuple[str, ...] = ()
        self.stdin = Stdin(feed.process, channel, mark=f"{session.id}-{feed.process}{writer}")
        self._feed, self._channel, self._session = feed, channel, session

    @property
    def id(self) -> str:
        return self._feed.process

    @property
    def status(self) -> int | None:
        """Its exit status; None while unknown."""
        return self._feed.status

    @property
    def can_close_stdin(self) -> bool:
        """Whether the server can close its stdin."""
        return self._session.capabilities.close_stdin

    @property
    def can_be_killed(self) -> bool:
        """Whether the server can send other signals than an interrupt."""
        return self._session.capabilities.kill

    async def receive(self) -> list[Event]:
        """Wait for the events since the last call, in order; empty after the close."""
        return await self._feed.receive()

    async def events(self) -> AsyncIterator[Event]:
        """Yield all events in order, each exactly once, to the close."""
        while batch := await self._feed.receive():
            for event in batch:
                yield event

    async def recall(self, *, after: int, bytes_max: int) -> Page:
        """Read retained output after an event again."""
        params = ReadParams(self.id, after_seq=after, max_bytes=bytes_max, wait_ms=0)
        try:
            return read_page(params, await self._feed.ask(params))
        except ErrorResponse as error:
            raise refused(error, subject=self.id) from error

    async def wait(self) -> int:
        """Wait for the exit; returns the exit status.

        Raises `ProcessLost` if it is unknown because the keeper was killed. The output need not be
        read meanwhile, until the server's buffer (64 MiB) is full: then the process blocks. Output
        that has no reader by the exit counts as acknowledged: it can be read for as long as the
        server retains closed processes (30 s by default).
        """
        return await self._feed.wait_status()

    async def write(self, data: bytes) -> None:
        """Write to stdin: once, whole and after all earlier writes."""
        await self.stdin.write(data)

    async def close_stdin(self) -> None:
        """Close stdin; raises `CapabilityMissing`."""
        self._demand("closeStdin", self.can_close_stdin)
        await self.stdin.close()

    async def resize(self, *, rows: int, cols: int) -> None:
        """Set the terminal size; raises `CapabilityMissing`."""
        self._demand("resize", self._session.capabilities.resize)
        await self._call("process/resize", ResizeParams(self.id, rows, cols), dict[str, object])

    async def signal(self, name: str = "interrupt") -> None:
        """Signal its process group; raises `CapabilityMissing` for other signals than an
        interrupt.
        """
        if name != "interrupt":
            self._demand("kill", self.can_be_killed)
        await self._call("process/signal", SignalParams(self.id, name), dict[str, object])

    async def terminate(self) -> bool:
        """Kill it and all its descendants; returns whether it was still running."""
        params = ProcessParams(self.id)
        return (await self._call("process/terminate", params, TerminateResult)).running

    async def forget(self) -> None:
        """Remove its record and its output from the server, and free its id.

        Raises `RequestUnfit` while it runs. A server without this capability forgets closed
        processes by itself after its retention time.
        """
        if self._session.capabilities.forget:
            params = ProcessParams(self.id)
            await self._call("process/forget", params, dict[str, object], repeats=True)
            self._feed.forget()

    def _demand(self, capability: str, is_there: bool) -> None:
        if not is_there:
            raise CapabilityMissing(capability=capability)

    async def _call(
        self, method: str, params: WireStruct, result: type[Result], *, repeats: bool = False
    ) -> Result:
        try:
            return await self._channel.call(method, params, result, repeats=repeats)
        except ErrorResponse as error:
            raise refused(error, subject=self.id) from error
