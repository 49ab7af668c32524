"""Serve whoever dials a host: who leads it, and everyone who only watches."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast import __version__
from holdfast.failures import Failure, to_wire, ungrouped
from holdfast.host.failures import LeaseOutdated, NotLeading
from holdfast.host.journal import JOURNAL, Book
from holdfast.host.journal_tail import Line
from holdfast.host.model import (
    Abort,
    Answer,
    AnyRecord,
    Close,
    Command,
    Happened,
    Opened,
    Prompt,
    Steer,
)
from holdfast.host.ports import Workshop
from holdfast.host.protocol import (
    ABORT,
    ANSWER,
    ATTACH,
    CLOSE,
    DELTAS,
    PROMPT,
    RECORDS,
    STATE,
    STEER,
    TROUBLE,
    WATCH,
    AttachParams,
    Done,
    NoParams,
    Pulse,
    Role,
    Standing,
    Trouble,
    WatchParams,
    hello,
)
from holdfast.host.session import Phase, decide, lead, resumed
from holdfast.host.turns import ANSWER_LONGEST, Converser, EndEarlier, Turns, nothing_earlier
from holdfast.rpc import (
    HELLO,
    Connection,
    ConnectionConfig,
    Handler,
    HandshakeGate,
    Service,
    Transport,
    hello_handler,
    listen,
)
from holdfast.runners.model import Delta, Noticed
from holdfast.world import Clock, Disk, SystemClock, SystemDisk, WriterThread, companions
from holdfast.world.failures import DiskFull

_SHOWN_MAX = 1_000
_FAREWELL_LONGEST = 1.0  # seconds


class Server(Protocol):
    """Where callers come in."""

    async def accept(self) -> Transport:
        """Wait for the next caller."""
        ...


class Reception:
    """Everyone who has dialled, and what is only shown to them."""

    def __init__(self, book: Book, clock: Clock) -> None:
        self.book = book
        self.clock = clock
        self.trouble: Failure | None = None
        self._watching: set[Visit] = set()
        self._told = anyio.Event()
        self._visits = 0

    @property
    def is_visited(self) -> bool:
        """Whether anybody is here."""
        return self._visits > 0

    async def serve(self, server: Server, turns: Turns) -> None:
        """Let everyone in who dials, until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                transport = await server.accept()
                tasks.start_soon(self._receive, transport, turns)

    async def _receive(self, transport: Transport, turns: Turns) -> None:
        self._visits += 1
        try:
            await Visit(self, turns).attend(transport)
        finally:
            self._visits -= 1

    async def farewell(self) -> None:
        """Wait until everyone who watches has been told everything, or does not listen."""
        with anyio.move_on_after(_FAREWELL_LONGEST):
            while any(visit.told < self.book.seq for visit in self._watching):
                self._told = anyio.Event()
                await self._told.wait()

    def tell(self) -> None:
        """Somebody has been told something that is kept, or hears nothing any more."""
        self._told.set()

    def show(self, deltas: Sequence[Delta]) -> None:
        """Show everyone who watches what is not kept, if they are not behind."""
        for visit in self._watching:
            visit.show(DELTAS, deltas)

    def complain(self, failure: Failure | None) -> None:
        """Tell everyone who watches what keeps the session from being written down."""
        self.trouble = failure
        for visit in self._watching:
            visit.show(TROUBLE, Trouble(to_wire(failure) if failure else None))

    def enter(self, visit: Visit) -> None:
        """Show this one, too, what there is to see."""
        self._watching.add(visit)

    def leave(self, visit: Visit) -> None:
        """Show this one nothing more."""
        self._watching.discard(visit)
        self.tell()


class Visit:
    """One connection with one caller."""

    def __init__(self, reception: Reception, turns: Turns) -> None:
        self._reception, self._book, self._turns = reception, reception.book, turns
        self.told: int  # up to which record, once it watches
        self._role: Role | None = None
        self._generation = 0  # of the lease that we lead with
        self._connection: Connection
        self._tasks: TaskGroup
        self._watching = anyio.CancelScope()
        self._shown: list[tuple[str, object]] = []
        self._stirred = anyio.Event()

    async def attend(self, transport: Transport) -> None:
        """Serve the caller until one of us hangs up."""
        gate = HandshakeGate(method=HELLO)
        handlers: dict[str, Handler[Any]] = {  # Any: each method has params of its own
            HELLO: hello_handler(hello("holdfast host", __version__), gate),
            ATTACH: Handler(AttachParams, self._attach),
            STATE: Handler(NoParams, self._state),
            WATCH: Handler(WatchParams, self._watch),
            PROMPT: Handler(Prompt, self._commanded),
            STEER: Handler(Steer, self._steer),
            ANSWER: Handler(Answer, self._commanded),
            ABORT: Handler(Abort, self._commanded),
            CLOSE: Handler(Close, self._commanded),
        }
        terms = ConnectionConfig(
            service=Service(handlers), serves=gate, pulse=self._pulse, peer="caller"
        )
        connection = Connection(transport, terms)
        try:
            async with connection as self._connection, companions() as self._tasks:
                await connection.wait_ended()
        finally:
            self._reception.leave(self)

    def show(self, method: str, what: object) -> None:
        """Show something that is not kept, unless the caller is slow to look."""
        if len(self._shown) < _SHOWN_MAX or method == TROUBLE:
            self._shown.append((method, what))
            self._stirred.set()

    async def _attach(self, params: AttachParams) -> Standing:
        """Lead the session, or only watch it; hear where it stands."""
        if params.role is Role.LEAD:
            generation = params.generation
            if generation is None:
                generation = self._book.session.generation
            records = lead(self._book.session, generation)
            if records:
                await self._book.write(*records)
            self._generation = generation
        self._role = params.role
        return self._standing()

    async def _state(self, _: NoParams) -> Standing:
        """Where the session stands."""
        return self._standing()

    async def _watch(self, params: WatchParams) -> Done:
        """Be told everything after a record, and what is shown meanwhile."""
        self._watching.cancel()
        self._watching = anyio.CancelScope()
        self.told = params.after
        self._tasks.start_soon(self._tell, params, self._watching)
        self._reception.enter(self)
        if self._reception.trouble is not None:
            self.show(TROUBLE, Trouble(to_wire(self._reception.trouble)))
        return Done(self._book.seq)

    async def _commanded(self, command: Command) -> Done:
        self._check_leading()
        if isinstance(command, Prompt):
            self._turns.check(command.how)
        while True:
            records = decide(self._book.session, command, at_ms=self._now())
            if records:
                return Done(await self._book.write(*records))
            if command.id in self._book.kept.commands:
                return Done(self._book.seq)
            await self._book.stirred()  # it was given before, and is on its way to the disk

    async def _steer(self, command: Steer) -> Done:
        """Steer the turn; if that takes nothing more, what was said waits for its own."""
        self._check_leading()
        if command.id not in self._book.kept.commands:
            decide(self._book.session, command, at_ms=self._now())  # or say what is wrong with it
            await self._turns.steer(command)
        return await self._commanded(command)

    async def _tell(self, params: WatchParams, scope: anyio.CancelScope) -> None:
        with suppress(Failure), scope, ungrouped():  # a failure: the caller has hung up
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_records, params)
                tasks.start_soon(self._tell_shown)

    async def _tell_records(self, params: WatchParams) -> None:
        async with aclosing(self._book.follow(params.after)) as pages:
            async for page in pages:
                await self._connection.notify(RECORDS, _told(params.number, page))
                self.told = page[-1].seq
                self._reception.tell()

    async def _tell_shown(self) -> None:
        while True:
            shown, self._shown = self._shown, []
            for method, what in shown:
                await self._connection.notify(method, what)
            if not self._shown:
                self._stirred = anyio.Event()
                await self._stirred.wait()

    def _check_leading(self) -> None:
        if self._role is not Role.LEAD:
            raise NotLeading()
        newest = self._book.session.generation
        if self._generation < newest:  # whoever had it may not know yet that it is over
            raise LeaseOutdated(given=self._generation, newest=newest)

    def _standing(self) -> Standing:
        session = self._book.session
        return Standing(
            session=session.id,
            project=session.project,
            draft=session.draft,
            runner=session.runner,
            phase=session.phase,
            attempt=session.attempt,
            turn=session.turn,
            waiting=len(session.waiting),
            seq=self._book.seq,
            questions=session.questions,
            used=session.used,
            failure=session.failure,
        )

    def _pulse(self) -> Pulse:
        awaiting = self._turns.awaiting
        what, seconds = ("", 0.0) if awaiting is None else awaiting
        return Pulse(self._turns.idle_for, self._book.writing_for, what, seconds)

    def _now(self) -> int:
        return int(self._reception.clock.now() * 1000)


def _told(number: int, lines: list[Line]) -> msgspec.Raw:
    """A `Told` whose records are not read here: they go as they stand in the journal."""
    listed = b",".join([b"[%d,%b]" % (line.seq, line.data) for line in lines])
    return msgspec.Raw(b'{"watch":%d,"records":[%b]}' % (number, listed))


# Say that the disk is full, also if only the words of an agent find no room on it.

_LOOK_AGAIN: Final = 2.0
_ROOM_BYTES: Final = 64 * 1024  # less is none: a file takes whole blocks, and more for its name


async def watch_room(directory: Path, reception: Reception) -> None:
    """Tell everyone as long as there is no room, until cancelled.

    What an agent says waits in its pipe while the plane has no room to keep it: then nothing
    comes, the session has nothing to write, and nobody else would say why.
    """
    is_told = False
    while True:
        await anyio.sleep(_LOOK_AGAIN)
        is_full = not has_room(directory)
        if is_full and reception.trouble is None:
            reception.complain(DiskFull(path=str(directory)))
            is_told = True
        elif is_told and not is_full:
            reception.complain(None)
            is_told = False


def has_room(directory: Path) -> bool:
    """Whether anything more can be kept there: asked first, and tried where the answer is no.

    What is set aside for root, or by the file system for itself, counts as free for some.
    """
    try:
        there = os.statvfs(directory)
    except OSError:  # whatever is wrong there is said by who needs it
        return True
    return there.f_bavail * there.f_frsize >= _ROOM_BYTES or _finds_room(directory)


def _finds_room(directory: Path) -> bool:
    if sys.platform != "linux":  # elsewhere a file without a name cannot be made
        return False
    file = -1
    try:
        file = os.open(directory, os.O_TMPFILE | os.O_WRONLY)
        return os.write(file, bytes(_ROOM_BYTES)) == _ROOM_BYTES
    except OSError:
        return False
    finally:
        if file >= 0:
            os.close(file)


# One process for one session: it holds the runner, the journal and a socket until it ends.

# Seconds that a host with nothing to do and without a client stays. It costs 45 MiB to keep one
# after each `ask`, and half a second to start another one.
IDLE_LONGEST: Final = 30.0
_RUNNER_POLL: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOrder:
    """Which session is to be hosted, where it is kept, and where its host is to be reached.

    `reason` says what became of the host before, as far as anybody knows; `answer_longest`, for
    how long a question waits for a person. `end_earlier` ends all that earlier hosts of the session
    have started and returns the commands of what could not be ended. `stopped_by` names whoever has
    ended everything here on purpose at this time (ms) or later.
    """

    session: str
    directory: Path
    socket: Path
    project: str
    draft: str
    runner: str
    reason: str = "its host died"
    answer_longest: float = ANSWER_LONGEST
    end_earlier: EndEarlier = nothing_earlier
    stopped_by: Callable[[int], str] = field(default=lambda _: "")


async def run_host(
    order: HostOrder,
    runner: Converser,
    workshop: Workshop,
    *,
    disk: Disk | None = None,
    clock: Clock | None = None,
) -> None:
    """Host a session until it is closed, or nobody has wanted anything of it for a while."""
    clock = clock or SystemClock()
    with WriterThread() as thread:
        path = order.directory / JOURNAL
        book = Book.open(disk or SystemDisk(), path, name=order.session, run=thread.start)
        try:
            server = await listen(order.socket)
            try:
                await hosted(order, book, server, runner, workshop, clock)
            finally:
                with anyio.CancelScope(shield=True):
                    await server.aclose()
        finally:
            book.close()


async def hosted(
    order: HostOrder,
    book: Book,
    server: Server,
    runner: Converser,
    workshop: Workshop,
    clock: Clock,
) -> None:
    """Host a session on what is open already, until it is closed or left alone."""
    reception = Reception(book, clock)
    turns = Turns(
        book=book,
        runner=runner,
        workshop=workshop,
        clock=clock,
        told=reception.show,
        troubled=reception.complain,
        answer_longest=order.answer_longest,
        end_earlier=order.end_earlier,
        stopped_by=order.stopped_by,
    )
    async with companions() as tasks:
        tasks.start_soon(reception.serve, server, turns)  # at once: who comes is told of trouble
        tasks.start_soon(watch_room, order.directory, reception)
        await turns.keep(lambda: _first_words(order, book, int(clock.now() * 1000)))
        tasks.start_soon(_leave_if_idle, book, reception, tasks.cancel_scope)
        await turns.run()
        await reception.farewell()


def _first_words(order: HostOrder, book: Book, at_ms: int) -> tuple[AnyRecord, ...]:
    records: tuple[AnyRecord, ...] = resumed(book.session, at_ms=at_ms, reason=order.reason)
    if (damage := book.damage) is not None:
        told = Noticed(damage.user_message, to_wire(damage.stamped(at_ms / 1000)))
        records = (*records, Happened(book.session.turn, told))
    if book.session.id:
        return records
    # Nothing was written down yet, or power failed while its first words were.
    return (Opened(order.session, order.project, order.draft, order.runner, at_ms), *records)


async def _leave_if_idle(book: Book, reception: Reception, scope: anyio.CancelScope) -> None:
    """Go when nobody has been there and nothing has run for a while: the journal is all we know."""
    idle = 0.0
    while idle < IDLE_LONGEST:
        await anyio.sleep(_RUNNER_POLL)
        is_idle = book.session.phase is Phase.IDLE and not reception.is_visited
        idle = idle + _RUNNER_POLL if is_idle and not book.session.waiting else 0.0
    scope.cancel()
