"""An exec-server in memory: sessions, retention, takeover, restarts; its network fails as told."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
import msgspec
import pybase64
from anyio.abc import TaskGroup

from holdfast.exec import protocol as wire
from holdfast.exec.failures import (
    FileMissing,
    ProcessExists,
    ProcessUnknown,
    SessionAttached,
    SessionExpired,
    StartCancelled,
)
from holdfast.exec.flow_control import Credit
from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.server.error_replies import exec_error
from holdfast.exec.server.model import (
    FileData,
    Metadata,
    PathParams,
    ReadFileParams,
    WriteFileParams,
)
from holdfast.failures import Failure
from holdfast.rpc import Connection, ConnectionConfig, Handler, Service
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, SocketRefused
from holdfast.rpc.model import Dialect, Notification
from holdfast.rpc.transports.memory import MemoryTransport, pair

_UNREAD_MAX = 64 * 1024
ENDS = (ConnectionClosed, ConnectionLost)


@dataclass(eq=False)
class SimProcess:
    """A process: all that ever happened in it, and what of that is still kept."""

    id: str
    argv: tuple[str, ...]
    retained_max: int
    stirred: anyio.Event = field(default_factory=anyio.Event)
    room: anyio.Event = field(default_factory=anyio.Event)
    unread: int = 0  # bytes of input that a `stage` has not taken
    stdin_closed: bool = False
    events: list[Event] = field(default_factory=list[Event])
    dropped: int = 0  # the last number that is no longer kept
    taken: int | None = None  # the last number that its client needs no more, if it says so
    written: dict[str, bytes] = field(default_factory=dict[str, bytes])
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def status(self) -> int | None:
        return next((e.status for e in self.events if isinstance(e, Exited)), None)

    @property
    def is_closed(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Closed)

    @property
    def is_full(self) -> bool:
        """Whether it may say no more until something is taken."""
        return self.taken is not None and len(self._kept()) > self.retained_max

    def add(self, event: Event) -> None:
        self.events.append(event)
        self._make_room()

    def take(self, seq: int) -> None:
        self.taken = max(seq, self.taken or 0)
        self._make_room()
        if not self.is_full:
            self.room.set()
            self.room = anyio.Event()

    async def wait_room(self) -> None:
        while self.is_full:
            await self.room.wait()

    def _make_room(self) -> None:
        outputs = self._kept()
        if len(outputs) > self.retained_max:
            oldest = outputs[-self.retained_max - 1]
            self.dropped = oldest if self.taken is None else min(oldest, self.taken)

    def _kept(self) -> list[int]:
        if len(self.events) - self.dropped <= self.retained_max:
            return []  # all of them fit, whatever they are
        return [e.seq for e in self.events[self.dropped :] if isinstance(e, Output)]

    def read(self, asked: wire.ReadParams, *, is_ours: bool) -> wire.ReadResult:
        after = max(asked.after_seq or 0, self.dropped)
        kept = [e for e in self.events[after:] if isinstance(e, Output)]
        shown = kept[:4] if asked.max_bytes is not None else kept
        is_whole = asked.max_bytes is None or not shown
        return wire.ReadResult(
            chunks=tuple(wire.Chunk(e.seq, e.stream, _base64(e.data)) for e in shown),
            next_seq=len(self.events) + 1 if is_whole else shown[-1].seq + 1,
            exited=self.status is not None,
            exit_code=self.status,
            closed=self.is_closed,
            first_retained_seq=self.dropped + 1 if is_ours else None,
            has_more=len(shown) < len(kept) if is_ours else None,
        )


@dataclass(eq=False)
class SimSession:
    """Processes, and the connection that has them at the moment."""

    id: str
    processes: dict[str, SimProcess] = field(default_factory=dict[str, SimProcess])
    starting: dict[str, anyio.CancelScope] = field(default_factory=dict[str, anyio.CancelScope])
    owner: Attendance | None = None
    detached_at: float = 0.0


@dataclass(frozen=True)
class Traits:
    """What sort of server this is."""

    is_ours: bool = True  # pages, and says what it retains first
    takeover: bool = True
    detached_ttl: float = 30.0
    retained_max: int = 1000  # chunks of each process
    start_delay: float = 0.01


class SimServer:
    """Serves whoever dials; knows all that ever happened, for tests to compare with."""

    def __init__(self, chance: random.Random, tasks: TaskGroup, traits: Traits) -> None:
        self.chance, self.traits = chance, traits
        self.tasks = tasks
        self.sessions: dict[str, SimSession] = {}
        self.all_processes: list[SimProcess] = []
        self.files: dict[str, bytes] = {}
        self.file_writes = 0
        self.refuses = False
        self.hangs = False
        self.links: list[tuple[MemoryTransport, MemoryTransport]] = []
        self._sessions_made = 0
        self._stopped = anyio.CancelScope()

    async def dial(self) -> MemoryTransport:
        if self.hangs:
            await anyio.sleep(1_000.0)
        if self.refuses:
            raise SocketRefused(path="sim", reason="refused")
        near, far = pair()
        delay = self.chance.choice([0.0, 0.001, 0.05])
        near.outgoing.delay = far.outgoing.delay = delay
        self.links.append((near, far))
        self.tasks.start_soon(Attendance(self, far).serve)
        return near

    def restart(self, *, keeps_state: bool) -> None:
        """Die and come back at once: processes live on with the state, or end without it."""
        for near, _ in self.links:
            near.cut("the server died")
        for session in self.sessions.values():
            session.owner, session.detached_at = None, anyio.current_time()
        if not keeps_state:
            for session in self.sessions.values():
                self._end(session)
            self.sessions.clear()

    def attach(self, session_id: str | None, owner: Attendance) -> SimSession:
        self._expire()
        if session_id is None:
            self._sessions_made += 1
            session = SimSession(f"session-{self._sessions_made}")
            self.sessions[session.id] = session
        elif session_id in self.sessions:
            session = self.sessions[session_id]
            if session.owner is not None and not self.traits.takeover:
                raise SessionAttached(session=session_id)
            if session.owner is not None:
                session.owner.put_out()
        else:
            raise SessionExpired(session=session_id)
        session.owner = owner
        return session

    def running(self) -> list[SimProcess]:
        """The processes that have not ended."""
        return [each for each in self.all_processes if each.status is None]

    def _expire(self) -> None:
        for session in tuple(self.sessions.values()):
            age = anyio.current_time() - session.detached_at
            if session.owner is None and age >= self.traits.detached_ttl:
                self._end(session)
                del self.sessions[session.id]

    def _end(self, session: SimSession) -> None:
        for process in session.processes.values():
            process.scope.cancel()
            if process.status is None:
                process.add(Exited(len(process.events) + 1, 137))


class Attendance:
    """One connection, from the server's side."""

    def __init__(self, server: SimServer, transport: MemoryTransport) -> None:
        self.server = server
        self._session: SimSession | None = None
        self._news: list[tuple[str, Event]] = []
        self._unread_bytes_max: int | None = None
        self._credits: dict[SimProcess, tuple[Credit, int]] = {}  # and what to tell next
        self._stirred = anyio.Event()
        self._scope = anyio.CancelScope()
        handlers = {
            "initialize": Handler(wire.InitializeParams, self._initialize),
            "environment/status": Handler(dict[str, object], self._status),
            "fs/getMetadata": Handler(PathParams, self._metadata),
            "fs/readFile": Handler(ReadFileParams, self._read_file),
            "fs/writeFile": Handler(WriteFileParams, self._write_file),
            "process/start": Handler(wire.StartParams, self._start),
            "process/read": Handler(wire.ReadParams, self._read),
            "process/write": Handler(wire.WriteParams, self._write),
            "process/closeStdin": Handler(wire.ProcessParams, self._close_stdin),
            "process/terminate": Handler(wire.ProcessParams, self._terminate),
        }
        service = Service(handlers, error_form=exec_error)
        self._connection = Connection(
            transport, ConnectionConfig(service=service, dialect=Dialect())
        )

    async def serve(self) -> None:
        with self._scope:
            async with self._connection, anyio.create_task_group() as tasks:
                self._connection.follow(self)
                tasks.start_soon(self._pump)
                await self._connection.wait_ended()
                tasks.cancel_scope.cancel()
        if self._session is not None and self._session.owner is self:
            self._session.owner = None
            self._session.detached_at = anyio.current_time()

    def put_out(self) -> None:
        self._scope.cancel()

    def put(self, batch: Sequence[Notification], size: int) -> None:  # a follower's
        """Hear what the client has taken."""
        for notification in batch:
            if notification.method == "process/taken" and self._session is not None:
                told = msgspec.json.decode(notification.params, type=wire.TakenParams)
                if (process := self._session.processes.get(told.process_id)) is not None:
                    process.take(told.seq)
                    self._credit(process)[0].take(told.seq)
                    self._tell_on(process)

    def end(self, failure: Failure) -> None:
        """Hear nothing more."""

    def tell(self, process: SimProcess, event: Event) -> None:
        if self._unread_bytes_max is None:
            self._say(process, event)
        else:
            self._credit(process)
            self._tell_on(process)

    def _credit(self, process: SimProcess) -> tuple[Credit, int]:
        if process not in self._credits:
            assert self._unread_bytes_max is not None, "it says what it has taken"
            credit = Credit(self._unread_bytes_max, taken=process.taken or 0)
            self._credits[process] = credit, max(1, len(process.events))
        return self._credits[process]

    def _tell_on(self, process: SimProcess) -> None:
        """Tell as much as the client has said that it holds; and that it has ended, in any case."""
        credit, next_seq = self._credits[process]
        next_seq = max(next_seq, credit.taken + 1)
        while next_seq <= len(process.events) and credit.bytes_left:
            event = process.events[next_seq - 1]
            credit.tell(event.seq, [len(event.data) if isinstance(event, Output) else 0])
            self._say(process, event)
            next_seq += 1
        self._credits[process] = credit, next_seq
        for event in process.events[next_seq - 1 :]:
            if isinstance(event, Exited):
                self._say(process, event)

    def _say(self, process: SimProcess, event: Event) -> None:
        self._news.append((process.id, event))
        self._stirred.set()

    async def _pump(self) -> None:
        """Tell the news; separate tasks would, so now and then it is out of order."""
        try:
            while True:
                await self._stirred.wait()
                self._stirred = anyio.Event()
                news, self._news = self._news, []
                if self.server.chance.random() < 0.3:
                    self.server.chance.shuffle(news)
                for process, event in news:
                    await self._connection.notify(*_message(process, event))
        except ENDS:
            return

    async def _initialize(self, asked: wire.InitializeParams) -> wire.InitializeResult:
        self._session = self.server.attach(asked.resume_session_id, self)
        is_ours = self.server.traits.is_ours
        if is_ours and asked.unread_bytes_max is not None:
            self._unread_bytes_max = min(
                asked.unread_bytes_max, 8 * self.server.traits.retained_max
            )
        can = wire.ServerCapabilities(first_retained_seq=is_ours, close_stdin=is_ours)
        shell = wire.ShellInfo("sh", "/bin/sh")
        info = wire.EnvironmentInfo(shell, capabilities=can)
        return wire.InitializeResult(self._session.id, info, self._unread_bytes_max)

    async def _status(self, _: dict[str, object]) -> dict[str, object]:
        return {"status": "ready"}

    async def _metadata(self, asked: PathParams) -> Metadata:
        if asked.path not in self.server.files:
            raise FileMissing(path=asked.path, reason="nothing is there")
        size = len(self.server.files[asked.path])
        return Metadata(
            is_directory=False,
            is_file=True,
            is_symlink=False,
            size=size,
            created_at_ms=0,
            modified_at_ms=0,
        )

    async def _read_file(self, asked: ReadFileParams) -> FileData:
        if asked.path not in self.server.files:
            raise FileMissing(path=asked.path, reason="nothing is there")
        return FileData(_base64(self.server.files[asked.path]))

    async def _write_file(self, asked: WriteFileParams) -> dict[str, object]:
        self.server.file_writes += 1
        self.server.files[asked.path] = pybase64.b64decode(asked.data_base64)
        return {}

    async def _start(self, asked: wire.StartParams) -> wire.StartResult:
        session = self._attached()
        if asked.process_id in session.processes.keys() | session.starting.keys():
            raise ProcessExists(process=asked.process_id)
        with anyio.CancelScope() as reservation:
            session.starting[asked.process_id] = reservation
            try:
                await anyio.sleep(self.server.traits.start_delay)
            finally:
                del session.starting[asked.process_id]
        if reservation.cancel_called:
            raise StartCancelled(process=asked.process_id)
        process = SimProcess(asked.process_id, asked.argv, self.server.traits.retained_max)
        process.taken = None if self._unread_bytes_max is None else 0
        session.processes[process.id] = process
        self.server.all_processes.append(process)
        run = Run(self.server, session, process)
        self.server.tasks.start_soon(run.live)
        return wire.StartResult(process.id, "none")

    async def _read(self, asked: wire.ReadParams) -> wire.ReadResult:
        process = self._process(asked.process_id)
        return process.read(asked, is_ours=self.server.traits.is_ours)

    async def _write(self, asked: wire.WriteParams) -> wire.WriteResult:
        if asked.process_id in self._attached().starting:
            return wire.WriteResult("starting")
        process = self._attached().processes.get(asked.process_id)
        if process is None:
            return wire.WriteResult("unknownProcess")
        data = pybase64.b64decode(asked.chunk)
        while process.unread > _UNREAD_MAX:
            await process.room.wait()
        if data and asked.write_id not in process.written:
            process.written[asked.write_id] = data
            process.stirred.set()
            if process.argv[0] == "stage":
                process.unread += len(data)
            if process.argv[0] == "cat" and process.status is None:
                Run(self.server, self._attached(), process).say(data)
        return wire.WriteResult("accepted")

    async def _close_stdin(self, asked: wire.ProcessParams) -> dict[str, object]:
        process = self._process(asked.process_id)
        process.stdin_closed = True
        process.stirred.set()
        return {}

    async def _terminate(self, asked: wire.ProcessParams) -> wire.TerminateResult:
        if (reservation := self._attached().starting.get(asked.process_id)) is not None:
            reservation.cancel()
            return wire.TerminateResult(running=True)
        process = self._attached().processes.get(asked.process_id)
        if process is None or process.status is not None:
            return wire.TerminateResult(running=False)
        process.scope.cancel()
        Run(self.server, self._attached(), process).end(137)
        return wire.TerminateResult(running=True)

    def _attached(self) -> SimSession:
        assert self._session is not None
        return self._session

    def _process(self, id_: str) -> SimProcess:
        process = self._attached().processes.get(id_)
        if process is None:
            raise ProcessUnknown(process=id_)
        return process


@dataclass
class Run:
    """What a process does, with status 7 in the end.

    `print N` says N lines, `cat S` for S seconds what it is told, `stage` what a test has it say.
    """

    server: SimServer
    session: SimSession
    process: SimProcess

    async def live(self) -> None:
        chance = self.server.chance
        acts: dict[str, Callable[[], Awaitable[None]]] = {
            "print": self._print,
            "cat": self._wait,
            "stage": anyio.sleep_forever,  # a test plays it, by `say` and `end`
        }
        with self.process.scope:
            await acts[self.process.argv[0]]()
            is_early = chance.random() < 0.3
            if is_early:
                self._happen(Exited(self._next, 7))
                self.say(b"a word of a descendant\n")
            self.end(7)

    async def _print(self) -> None:
        for number in range(int(self.process.argv[1])):
            await self.process.wait_room()
            self.say(b"line %d\n" % number)
            await anyio.sleep(self.server.chance.choice([0.0, 0.0, 0.02, 1.0]))

    async def _wait(self) -> None:
        await anyio.sleep(float(self.process.argv[1]))

    def say(self, data: bytes, *, stream: str = "stdout") -> None:
        self._happen(Output(self._next, stream, data))

    def end(self, status: int) -> None:
        if self.process.status is None:
            self._happen(Exited(self._next, status))
        if not self.process.is_closed:
            self._happen(Closed(self._next))

    @property
    def _next(self) -> int:
        return len(self.process.events) + 1

    def _happen(self, event: Event) -> None:
        self.process.add(event)
        if self.session.owner is not None:
            self.session.owner.tell(self.process, event)


def _message(process: str, event: Event) -> tuple[str, object]:
    match event:
        case Output(seq, stream, data):
            return "process/output", wire.Output(process, seq, stream, _base64(data))
        case Exited(seq, status):
            return "process/exited", wire.Exited(process, seq, status)
        case Closed(seq):
            return "process/closed", wire.Closed(process, seq)


def _base64(data: bytes) -> str:
    return pybase64.b64encode_as_string(data)
