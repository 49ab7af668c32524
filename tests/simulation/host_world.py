"""A session in a world where hosts die, links are cut and the disk crashes or is full."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast.failures import Failure
from holdfast.host.journal import SCHEMA, SessionJournal
from holdfast.host.model import AnyRecord
from holdfast.host.protocol import ClientRole
from holdfast.host.server import HostConfig, serve_session
from holdfast.host.session import SessionState, fold
from holdfast.host.supervision import HostAccess, HostSupervisor, supervise_host
from holdfast.rpc.failures import SocketRefused
from holdfast.rpc.transports.memory import MemoryTransport, pair
from holdfast.runners.failures import RunnerEnded
from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    QuestionAsked,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from holdfast.world import disk_failure, read_journal
from holdfast.world.testing import CrashingDisk, DiskFaults, ManualClock, SimulatedPowerLoss
from tests.host.staging import Bench
from tests.simulation.harness import Trial

PATH = Path("/state/journal.jsonl")
SOCKET = Path("/run/host.sock")
ORDER = HostConfig(
    session="s1",
    directory=PATH.parent,
    socket=SOCKET,
    project="/p",
    draft="d1",
    runner="puppet",
    answer_longest=40.0,
)
ENDED = RunnerEnded(runner="puppet", reason="killed")


class FillingDisk:
    """A crashing disk that may have no room."""

    def __init__(self) -> None:
        self.real = CrashingDisk()
        self.is_full = False

    def open_to_write(self, path: Path) -> FillingFile:
        return FillingFile(self, self.real.open_to_write(path), path)

    def create(self, path: Path, *, mode: int) -> FillingFile:
        return FillingFile(self, self.real.create(path, mode=mode), path)

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)


class FillingFile:
    """A file of such a disk: what is appended needs room."""

    def __init__(self, disk: FillingDisk, file: object, path: Path) -> None:
        self._disk, self._file, self._path = disk, file, path

    def append(self, data: bytes) -> int:
        if self._disk.is_full:
            raise disk_failure(OSError(errno.ENOSPC, os.strerror(28)), path=str(self._path))
        return self._file.append(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


class Hosted:
    """One host, from its start to its death."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.scope = anyio.CancelScope()
        self.book: SessionJournal | None = None
        self.is_dead = False
        self._arrivals: list[MemoryTransport] = []
        self._links: list[MemoryTransport] = []
        self._arrived = anyio.Event()

    async def live(self) -> None:
        world = self._world
        with self.scope, suppress(Failure):
            try:
                self.book = SessionJournal.open(world.disk, PATH, name="s1", run=self._write)
            except SimulatedPowerLoss:
                world.power_lost()
                return
            world.host = self
            try:
                runner = MemoryRunner(world.script)
                await serve_session(ORDER, self.book, self, runner, world.bench, ManualClock())
            except* SimulatedPowerLoss:
                world.power_lost()
            finally:
                self.die()
                self.book.close()
                if world.host is self:
                    world.host = None

    async def accept(self) -> MemoryTransport:
        while not self._arrivals:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._arrivals.pop(0)

    def dialled(self) -> MemoryTransport:
        ours, theirs = pair()
        for each in (ours, theirs):
            each.outgoing.delay = self._world.trial.chance.choice([0.0, 0.001, 0.05])
        self._arrivals.append(theirs)
        self._links.append(theirs)
        self._arrived.set()
        return ours

    def cut(self, chance: float) -> None:
        """Cut some of those who are connected."""
        for link in list(self._links):
            if self._world.trial.chance.random() < chance:
                self._links.remove(link)
                link.cut()

    def die(self) -> None:
        """What is on its way to the disk gets there or not; everyone is cut off."""
        self.is_dead = True
        self.cut(1.0)
        self.scope.cancel()

    def _write(self, work: Callable[[], int], tell: Callable[[int | Failure], None]) -> None:
        async def later() -> None:
            chance = self._world.trial.chance
            await anyio.sleep(chance.choice([0.0, 0.001, 0.02, 0.5]))
            outcome: int | Failure = ENDED
            if not self.is_dead or chance.random() < 0.5:
                try:
                    outcome = work()
                except Failure as failure:
                    outcome = failure
                except SimulatedPowerLoss:
                    if not self.is_dead:  # else it was the disk before
                        self._world.power_lost()
            tell(outcome)

        self._world.tasks.start_soon(later)


class World:
    """Everything that a session stands on, and what harms it."""

    def __init__(self, trial: Trial, tasks: TaskGroup) -> None:
        self.trial, self.tasks = trial, tasks
        self.disk = FillingDisk()
        self.bench = Bench()
        self.bench.delay = 0.3  # such that some die while they publish
        self.host: Hosted | None = None
        self.script = [self._turn(number) for number in range(60)]
        self.deaths = 0

    async def start(self) -> None:
        """Start a host; one that finds another there goes again."""
        self.tasks.start_soon(Hosted(self).live)

    async def connect(self, path: Path) -> MemoryTransport:
        await anyio.sleep(0.001)
        if self.host is None or self.host.is_dead:
            raise SocketRefused(path=str(path), reason="nobody listens")
        return self.host.dialled()

    async def end(self, _: Path) -> None:
        self.kill()

    def kill(self) -> None:
        """As kill -9 does: what was written stays, what was not is not."""
        if self.host is not None:
            self.host.die()
            self.deaths += 1

    def power_lost(self) -> None:
        """As a power cut does: what was not synced may be lost, or torn."""
        self.kill()
        self.disk.real = self.disk.real.crash(self.trial.chance.randrange(10**6))

    def lose_power_soon(self) -> None:
        """In the middle of one of the next operations of the disk."""
        real = self.disk.real
        real.trouble.power_lost = real.operations + self.trial.chance.randrange(1, 6)

    def records(self) -> list[tuple[int, AnyRecord]]:
        """Everything that the journal holds now."""
        trouble, self.disk.real.trouble = self.disk.real.trouble, DiskFaults()
        found = list(read_journal(self.disk, PATH, schema=SCHEMA))
        self.disk.real.trouble = trouble
        return [(entry.seq, msgspec.json.decode(entry.data, type=AnyRecord)) for entry in found]

    def check_fold(self) -> None:
        """Whoever reads the journal stands where the host stands."""
        host = self.host
        if host is None or host.is_dead or host.book is None or host.book.writing_for:
            return
        if host.book.seq == len(self.records()):
            assert fold(SessionState(), (each for _, each in self.records())) == host.book.kept

    @asynccontextmanager
    async def seated(self, role: ClientRole, after: int) -> AsyncGenerator[HostSupervisor]:
        reach = HostAccess(connect=self.connect, end=self.end)
        async with supervise_host(SOCKET, self.start, role=role, after=after, reach=reach) as seat:
            yield seat

    def _turn(self, number: int) -> list[AnyEvent | float | Failure]:
        chance = self.trial.chance
        acts: list[AnyEvent | float | Failure] = [TurnStarted()]
        for step in range(chance.randrange(6)):
            name = f"{number}.{step}"
            acts += chance.choice(
                [
                    [Delta(name, DeltaKind.TEXT, "He"), TextCompleted(name, "Hello")],
                    [ToolStarted(name, "run", "make"), 0.1, ToolEnded(name, is_ok=True)],
                    [ToolStarted(name, "run", "make"), chance.choice([1.0, 100.0])],
                    [self._asked(name), TextCompleted(name, "Thanks")],
                    [chance.choice([0.01, 1.0, 30.0])],
                    [ENDED] if chance.random() < 0.2 else [0.1],
                ]
            )
        return acts

    def _asked(self, name: str) -> QuestionAsked:
        return QuestionAsked(
            name, "May I?", choices=(AnswerChoice("yes"), AnswerChoice("no", is_refusal=True))
        )
