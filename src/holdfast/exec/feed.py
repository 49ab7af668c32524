"""What one process says, in order and exactly once, however often the connection breaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import copy

import anyio

from holdfast.exec.core.answers import read_page, refused
from holdfast.exec.core.credit import Receipts
from holdfast.exec.core.sequence import Sequence
from holdfast.exec.failures import ProcessLost, ProcessUnknown, ReplayGap
from holdfast.exec.line import Line
from holdfast.exec.model import Event, Exited
from holdfast.exec.session import Session
from holdfast.exec.wire import (
    ProcessParams,
    ReadParams,
    ReadResult,
    TakenParams,
    TerminateResult,
)
from holdfast.failures import Failure
from holdfast.rpc import Connection
from holdfast.rpc.failures import ErrorResponse

Ask = Callable[[ReadParams], Awaitable[ReadResult]]

PAGE_BYTES_MAX = 1024 * 1024
_REORDERED_LONGEST = 0.05  # what is merely out of order is there by then


class Feed:
    """The events of one process, from news and, for whoever is behind, from what is kept.

    A reader that is slow holds no more than the sequence holds; the rest stays with the server
    and is read when there is room again. A server that can is told what was taken, and keeps the
    rest; what another one no longer keeps is a gap, and ends this process alone.
    """

    def __init__(self, sequence: Sequence, line: Line, session: Session) -> None:
        self.process = sequence.process
        self.is_started = False
        self._line, self._session = line, session
        self._sequence, self._receipts = sequence, Receipts()
        self._stirred = anyio.Event()
        self._is_reading_on = self._is_telling = False
        self._is_put_down = False
        self._is_unread = True  # nobody has asked for what it says
        self._is_awaited = False  # and somebody has seen its end
        self._failure: Failure | None = None

    @property
    def status(self) -> int | None:
        """The exit status, once anything told it."""
        return self._sequence.status

    @property
    def is_over(self) -> bool:
        """Whether the server is not needed any more for this process."""
        return self._sequence.is_complete or self._is_put_down

    def live(self, event: Event) -> None:
        """Take one notification."""
        if self._failure is None:
            self._sequence.live(event)
            self._stir()
            if self._is_awaited:
                self._tell_soon()

    def fail(self, failure: Failure) -> None:
        """Hand on what is in order, then this failure; the first one stays."""
        if self._failure is None and not self._sequence.is_complete:
            self._failure = failure
            self._stir()

    async def receive(self) -> list[Event]:
        """Wait for what happened since the last call; nothing after the close.

        A process that was lost has no exit: `ProcessLost` is raised after its last output.
        """
        self._is_unread = self._is_awaited = False
        while not (ready := self._taken()) and not (
            self._sequence.is_finished and self._failure is None
        ):
            if self._failure is not None:
                raise copy(self._failure)
            await self._stirred.wait()
        if self._receipts.take(ready, self._session.untaken_bytes_max) or (
            ready and self._sequence.is_finished
        ):
            self._tell_soon()
        self._read_on_if_behind()
        return ready

    async def wait_status(self) -> int:
        """Wait for the exit status, whether or not anyone receives."""
        while self._sequence.status is None:
            if self._failure is not None or self._sequence.is_lost:
                raise copy(self._failure or ProcessLost(process=self.process))
            await self._stirred.wait()
        if self._is_unread and not self._is_awaited:
            self._is_awaited = True
            self._tell_soon()
        return self._sequence.status

    async def catch_up(self, ask: Ask) -> None:
        """Read all that was missed, as far as there is room; a gap fails the process."""
        is_first = True
        while self._failure is None and not self.is_over:
            if not is_first and not (self._sequence.is_behind and self._sequence.has_room):
                return
            is_first = False
            await self._read_page(ask)

    async def ask(self, params: ReadParams) -> ReadResult:
        """Read on whichever connection the line has."""
        return await self._line.call("process/read", params, ReadResult, repeats=True)

    async def tell_taken(self, connection: Connection) -> None:
        """Tell a server that can use it what is not needed of it any more."""
        if self._session.untaken_bytes_max is not None and not self._is_put_down:
            seq = self._sequence.told if self._is_awaited else self._sequence.taken
            await connection.notify("process/taken", TakenParams(self.process, seq))

    def forget(self) -> None:
        """Take note that the server has forgotten the process, at our request."""
        self._is_put_down = True
        self.fail(ProcessUnknown(process=self.process))

    async def put_down(self) -> None:
        """End the process at the server, whatever became of it here."""
        with suppress(Failure):
            await self._line.call(
                "process/terminate", ProcessParams(self.process), TerminateResult, repeats=True
            )
        self._is_put_down = True

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
            self._line.start_soon(self.put_down)
        self._stir()

    def _tell_soon(self) -> None:
        if not self._is_telling:
            self._is_telling = True
            self._line.start_soon(self._tell)

    async def _tell(self) -> None:
        """Tell what was taken; if a connection breaks at that, the next one is told anyway."""
        with suppress(Failure):
            connection = await self._line.wait_connected()
            self._is_telling = False
            await self.tell_taken(connection)

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = anyio.Event()
        self._read_on_if_behind()

    def _read_on_if_behind(self) -> None:
        wants_more = self._sequence.is_behind and self._sequence.has_room
        if wants_more and not self._is_reading_on and self._failure is None:
            self._is_reading_on = True
            self._line.start_soon(self._read_on)

    async def _read_on(self) -> None:
        """Read what news did not bring, until it does again."""
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
