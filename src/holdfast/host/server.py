"""The server of a host: a leading client, any number of watching clients, one session.

  run_host         locks the journal, opens the socket, runs the rest, cleans up
  serve_session    task group: HostService, disk watch, idle timer, SessionTurns
  HostService      accepts connections, broadcasts deltas and trouble
  ClientSession    one connection: handshake, attach, commands, notifications
  SessionTurns     runs the turns (turns.py)

Invariants:

- A response to a command, and any record in a notification, is durable.
- Only a client with the newest lease generation may send commands; an older leader gets
  LeaseOutdated, even if it does not know yet that it was replaced.
- A slow client loses deltas, never records: records are read from the journal by cursor.
- The host exits when the session is closed, or after IDLE_LONGEST seconds without clients
  and work. The journal has everything the next host needs.

Decision: docs/decisions/0114-host-outside-the-place.md
"""

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
from holdfast.host.journal import JOURNAL, SessionJournal
from holdfast.host.journal_tail import JournalLine
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnyRecord,
    CloseCommand,
    EventRecorded,
    HostCommand,
    PromptCommand,
    SessionOpened,
    SteerCommand,
)
from holdfast.host.ports import SessionDraft
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
    Acknowledgement,
    AttachParams,
    ClientRole,
    EmptyParams,
    JournalTrouble,
    LoopHealth,
    SessionStatus,
    WatchParams,
    hello,
)
from holdfast.host.session import SessionPhase, decide, lead, resumed
from holdfast.host.turns import ANSWER_LONGEST, EndOrphans, SessionTurns, TurnRunner, no_orphans
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
from holdfast.runners.model import Delta, NoticeIssued
from holdfast.world import Clock, Disk, SystemClock, SystemDisk, WriterThread, background_tasks
from holdfast.world.failures import DiskFull

_SHOWN_MAX = 1_000
_FAREWELL_LONGEST = 1.0  # seconds to deliver the last records before exit


class HostListener(Protocol):
    """Accepts connections."""

    async def accept(self) -> Transport: ...


class HostService:
    """The clients of a host; broadcasts what is not recorded."""

    def __init__(self, journal: SessionJournal, clock: Clock) -> None:
        self.journal = journal
        self.clock = clock
        self.trouble: Failure | None = None
        self._watching: set[ClientSession] = set()
        self._told = anyio.Event()
        self._visits = 0

    @property
    def is_visited(self) -> bool:
        """Whether any client is connected."""
        return self._visits > 0

    async def serve(self, server: HostListener, turns: SessionTurns) -> None:
        """Accept clients until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                transport = await server.accept()
                tasks.start_soon(self._receive, transport, turns)

    async def _receive(self, transport: Transport, turns: SessionTurns) -> None:
        self._visits += 1
        try:
            await ClientSession(self, turns).attend(transport)
        finally:
            self._visits -= 1

    async def farewell(self) -> None:
        """Wait, for a limited time, until every watching client has all records."""
        with anyio.move_on_after(_FAREWELL_LONGEST):
            while any(client.told < self.journal.seq for client in self._watching):
                self._told = anyio.Event()
                await self._told.wait()

    def tell(self) -> None:
        """Wake `farewell`: a client received records, or disconnected."""
        self._told.set()

    def show(self, deltas: Sequence[Delta]) -> None:
        """Send deltas to all watching clients that keep up."""
        for client in self._watching:
            client.show(DELTAS, deltas)

    def complain(self, failure: Failure | None) -> None:
        """Tell all watching clients why the journal cannot be written, or that it can again."""
        self.trouble = failure
        for client in self._watching:
            client.show(TROUBLE, JournalTrouble(to_wire(failure) if failure else None))

    def enter(self, client: ClientSession) -> None:
        """Add a watching client."""
        self._watching.add(client)

    def leave(self, client: ClientSession) -> None:
        """Remove a watching client."""
        self._watching.discard(client)
        self.tell()


class ClientSession:
    """One connection of a client."""

    def __init__(self, service: HostService, turns: SessionTurns) -> None:
        self._service, self._journal, self._turns = service, service.journal, turns
        self.told: int  # last sequence number sent; set by `watch`
        self._role: ClientRole | None = None
        self._generation = 0  # of this client's lease
        self._connection: Connection
        self._tasks: TaskGroup
        self._watching = anyio.CancelScope()
        self._shown: list[tuple[str, object]] = []
        self._changed = anyio.Event()

    async def attend(self, transport: Transport) -> None:
        """Serve the connection until it ends."""
        gate = HandshakeGate(method=HELLO)
        handlers: dict[str, Handler[Any]] = {  # Any: each method has its own params type
            HELLO: hello_handler(hello("holdfast host", __version__), gate),
            ATTACH: Handler(AttachParams, self._attach),
            STATE: Handler(EmptyParams, self._state),
            WATCH: Handler(WatchParams, self._watch),
            PROMPT: Handler(PromptCommand, self._commanded),
            STEER: Handler(SteerCommand, self._steer),
            ANSWER: Handler(AnswerCommand, self._commanded),
            ABORT: Handler(AbortCommand, self._commanded),
            CLOSE: Handler(CloseCommand, self._commanded),
        }
        terms = ConnectionConfig(
            service=Service(handlers), serves=gate, pulse=self._pulse, peer="caller"
        )
        connection = Connection(transport, terms)
        try:
            async with connection as self._connection, background_tasks() as self._tasks:
                await connection.wait_ended()
        finally:
            self._service.leave(self)

    def show(self, method: str, what: object) -> None:
        """Queue a notification, or drop it if the client is slow."""
        if len(self._shown) < _SHOWN_MAX or method == TROUBLE:
            self._shown.append((method, what))
            self._changed.set()

    async def _attach(self, params: AttachParams) -> SessionStatus:
        """Attach as leader or watcher."""
        if params.role is ClientRole.LEAD:
            generation = params.generation
            if generation is None:
                generation = self._journal.session.generation
            records = lead(self._journal.session, generation)
            if records:
                await self._journal.write(*records)
            self._generation = generation
        self._role = params.role
        return self._standing()

    async def _state(self, _: EmptyParams) -> SessionStatus:
        """Return the status of the session."""
        return self._standing()

    async def _watch(self, params: WatchParams) -> Acknowledgement:
        """Start sending records after a sequence number."""
        self._watching.cancel()
        self._watching = anyio.CancelScope()
        self.told = params.after
        self._tasks.start_soon(self._tell, params, self._watching)
        self._service.enter(self)
        if self._service.trouble is not None:
            self.show(TROUBLE, JournalTrouble(to_wire(self._service.trouble)))
        return Acknowledgement(self._journal.seq)

    async def _commanded(self, command: HostCommand) -> Acknowledgement:
        self._check_leading()
        if isinstance(command, PromptCommand):
            self._turns.check(command.how)
        while True:
            records = decide(self._journal.session, command, at_ms=self._now())
            if records:
                return Acknowledgement(await self._journal.write(*records))
            if command.id in self._journal.kept.commands:
                return Acknowledgement(self._journal.seq)
            # A repeated command whose first write is still pending: wait, since the response means
            # durable.
            await self._journal.changed()

    async def _steer(self, command: SteerCommand) -> Acknowledgement:
        """Steer the running turn; if it accepts no input, the text is queued as a prompt."""
        self._check_leading()
        if command.id not in self._journal.kept.commands:
            # Raises if the command is not valid.
            decide(self._journal.session, command, at_ms=self._now())
            await self._turns.steer(command)
        return await self._commanded(command)

    async def _tell(self, params: WatchParams, scope: anyio.CancelScope) -> None:
        # A failure means that the client has disconnected.
        with suppress(Failure), scope, ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_records, params)
                tasks.start_soon(self._tell_shown)

    async def _tell_records(self, params: WatchParams) -> None:
        async with aclosing(self._journal.follow(params.after)) as pages:
            async for page in pages:
                await self._connection.notify(RECORDS, _told(params.number, page))
                self.told = page[-1].seq
                self._service.tell()

    async def _tell_shown(self) -> None:
        while True:
            shown, self._shown = self._shown, []
            for method, what in shown:
                await self._connection.notify(method, what)
            if not self._shown:
                self._changed = anyio.Event()
                await self._changed.wait()

    def _check_leading(self) -> None:
        if self._role is not ClientRole.LEAD:
            raise NotLeading()
        newest = self._journal.session.generation
        if self._generation < newest:  # it may not know yet that it was replaced
            raise LeaseOutdated(given=self._generation, newest=newest)

    def _standing(self) -> SessionStatus:
        session = self._journal.session
        return SessionStatus(
            session=session.id,
            project=session.project,
            draft=session.draft,
            runner=session.runner,
            phase=session.phase,
            attempt=session.attempt,
            turn=session.turn,
            waiting=len(session.waiting),
            seq=self._journal.seq,
            questions=session.questions,
            used=session.used,
            failure=session.failure,
        )

    def _pulse(self) -> LoopHealth:
        awaiting = self._turns.awaiting
        what, seconds = ("", 0.0) if awaiting is None else awaiting
        return LoopHealth(self._turns.idle_for, self._journal.writing_for, what, seconds)

    def _now(self) -> int:
        return int(self._service.clock.now() * 1000)


def _told(number: int, lines: list[JournalLine]) -> msgspec.Raw:
    """Encode a `RecordBatch` from the bytes of the journal, without decoding the records."""
    listed = b",".join([b"[%d,%b]" % (line.seq, line.data) for line in lines])
    return msgspec.Raw(b'{"watch":%d,"records":[%b]}' % (number, listed))


# Detection of a full disk, also when only the exec-server needs space.

_LOOK_AGAIN: Final = 2.0
# Bytes below which the disk counts as full: files take whole blocks, and more for metadata.
_ROOM_BYTES: Final = 64 * 1024


async def watch_disk_space(directory: Path, service: HostService) -> None:
    """Report a full disk to all clients until cancelled.

    While the exec-server has no space, output of the agent stays in its pipe. So the host receives
    nothing, writes nothing, and would not notice by itself.
    """
    is_told = False
    while True:
        await anyio.sleep(_LOOK_AGAIN)
        is_full = not has_disk_space(directory)
        if is_full and service.trouble is None:
            service.complain(DiskFull(path=str(directory)))
            is_told = True
        elif is_told and not is_full:
            service.complain(None)
            is_told = False


def has_disk_space(directory: Path) -> bool:
    """Whether files can grow there: by statvfs, or else by trying.

    statvfs is not reliable alone: reserved blocks count as free for some users only.
    """
    try:
        there = os.statvfs(directory)
    except OSError:  # other code reports what is wrong there
        return True
    return there.f_bavail * there.f_frsize >= _ROOM_BYTES or _finds_room(directory)


def _finds_room(directory: Path) -> bool:
    if sys.platform != "linux":  # O_TMPFILE exists only on Linux
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


# The host process.

# Seconds that an idle host without clients stays. Keeping one after each `ask` costs 45 MiB,
# starting another one half a second.
IDLE_LONGEST: Final = 30.0
_RUNNER_POLL: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Configuration of a host: its session, directory and socket.

    `reason` is how the previous host ended, as far as it is known. `answer_longest` is the timeout
    of questions in seconds. `end_earlier` ends processes of earlier hosts and returns the commands
    that could not be ended. `stopped_by` returns the user who ran `holdfast stop` at this time (ms)
    or later, or "".
    """

    session: str
    directory: Path
    socket: Path
    project: str
    draft: str
    runner: str
    reason: str = "its host died"
    answer_longest: float = ANSWER_LONGEST
    end_earlier: EndOrphans = no_orphans
    stopped_by: Callable[[int], str] = field(default=lambda _: "")


async def run_host(
    order: HostConfig,
    runner: TurnRunner,
    draft: SessionDraft,
    *,
    disk: Disk | None = None,
    clock: Clock | None = None,
) -> None:
    """Run the host of a session until it is closed or idle."""
    clock = clock or SystemClock()
    with WriterThread() as thread:
        path = order.directory / JOURNAL
        journal = SessionJournal.open(
            disk or SystemDisk(), path, name=order.session, run=thread.start
        )
        try:
            server = await listen(order.socket)
            try:
                await serve_session(order, journal, server, runner, draft, clock)
            finally:
                with anyio.CancelScope(shield=True):
                    await server.aclose()
        finally:
            journal.close()


async def serve_session(
    order: HostConfig,
    journal: SessionJournal,
    server: HostListener,
    runner: TurnRunner,
    draft: SessionDraft,
    clock: Clock,
) -> None:
    """Serve a session on an open journal and listener, until it is closed or idle."""
    service = HostService(journal, clock)
    turns = SessionTurns(
        journal=journal,
        runner=runner,
        draft=draft,
        clock=clock,
        told=service.show,
        troubled=service.complain,
        answer_longest=order.answer_longest,
        end_earlier=order.end_earlier,
        stopped_by=order.stopped_by,
    )
    async with background_tasks() as tasks:
        # First, so that clients can already see a full disk that blocks the first record.
        tasks.start_soon(service.serve, server, turns)
        tasks.start_soon(watch_disk_space, order.directory, service)
        await turns.keep(lambda: _first_words(order, journal, int(clock.now() * 1000)))
        tasks.start_soon(_leave_if_idle, journal, service, tasks.cancel_scope)
        await turns.run()
        await service.farewell()


def _first_words(order: HostConfig, journal: SessionJournal, at_ms: int) -> tuple[AnyRecord, ...]:
    records: tuple[AnyRecord, ...] = resumed(journal.session, at_ms=at_ms, reason=order.reason)
    if (damage := journal.damage) is not None:
        told = NoticeIssued(damage.user_message, to_wire(damage.stamped(at_ms / 1000)))
        records = (*records, EventRecorded(journal.session.turn, told))
    if journal.session.id:
        return records
    # The journal is new, or power failed while its first records were written.
    return (SessionOpened(order.session, order.project, order.draft, order.runner, at_ms), *records)


async def _leave_if_idle(
    journal: SessionJournal, service: HostService, scope: anyio.CancelScope
) -> None:
    """Cancel the host when it has been idle and without clients for IDLE_LONGEST seconds."""
    idle = 0.0
    while idle < IDLE_LONGEST:
        await anyio.sleep(_RUNNER_POLL)
        is_idle = journal.session.phase is SessionPhase.IDLE and not service.is_visited
        idle = idle + _RUNNER_POLL if is_idle and not journal.session.waiting else 0.0
    scope.cancel()
