"""A host in memory: a puppet for a runner, and callers on transports in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path

import anyio

from holdfast.failures import Failure
from holdfast.host.client import HostClient, RecordReceived, attach_host
from holdfast.host.journal import SessionJournal
from holdfast.host.model import AnyRecord, SessionOpened, TurnClosed
from holdfast.host.ports import DraftRevision, PublishResult
from holdfast.host.protocol import ClientRole
from holdfast.host.server import ClientSession, HostService
from holdfast.host.session import resumed
from holdfast.host.turns import EndOrphans, SessionTurns, no_orphans
from holdfast.rpc.transports.memory import pair
from holdfast.runners.memory import EventScript, MemoryRunner
from holdfast.world import background_tasks
from holdfast.world.testing import CrashingDisk, ManualClock, run_inline

PATH = Path("/state/journal.jsonl")
NOW = 1_000


class Bench:
    """A workshop in memory, which counts."""

    def __init__(self) -> None:
        self.prepared = 0
        self.causes: list[str] = []
        self.reported: list[tuple[int, DraftRevision | None]] = []
        self.delivered: list[str] = []
        self.refusal: Failure | None = None  # of what is to be published
        self.delay = 0.0  # that a publication takes

    async def prepare(self) -> None:
        self.prepared += 1

    async def revise(self, cause: str) -> DraftRevision | None:
        self.causes.append(cause)
        return DraftRevision(len(self.causes), f"cp_{len(self.causes)}")

    async def publish(self, key: str) -> PublishResult:
        await anyio.sleep(self.delay)
        if self.refusal is not None:
            raise copy(self.refusal)
        self.delivered.append(key)
        return PublishResult(1, f"cp_{key}")

    async def report(self, closed: TurnClosed, made: DraftRevision | None) -> str:
        self.reported.append((closed.turn, made))
        return f"/reports/{closed.turn}"


class Hosted:
    """A host that runs here, and what it stands on."""

    def __init__(
        self,
        disk: CrashingDisk,
        puppet: MemoryRunner,
        answer_longest: float,
        end_earlier: EndOrphans,
        stopped_by: Callable[[int], str],
    ) -> None:
        self.disk, self.puppet, self.bench = disk, puppet, Bench()
        self.clock = ManualClock()
        self.book = SessionJournal.open(disk, PATH, name="s1", run=run_inline)
        self.service = HostService(self.book, self.clock)
        self.turns = SessionTurns(
            journal=self.book,
            runner=puppet,
            draft=self.bench,
            clock=self.clock,
            told=self.service.show,
            troubled=self.service.complain,
            answer_longest=answer_longest,
            end_earlier=end_earlier,
            stopped_by=stopped_by,
        )

    @asynccontextmanager
    async def call(
        self, role: ClientRole = ClientRole.LEAD, generation: int | None = None
    ) -> AsyncGenerator[HostClient]:
        ours, theirs = pair()
        async with background_tasks() as tasks:
            tasks.start_soon(ClientSession(self.service, self.turns).attend, theirs)
            async with attach_host(ours, role=role, generation=generation) as call:
                yield call


@asynccontextmanager
async def hosted(
    script: EventScript,
    *,
    disk: CrashingDisk | None = None,
    answer_longest: float = 60.0,
    end_earlier: EndOrphans = no_orphans,
    stopped_by: Callable[[int], str] = lambda _: "",
) -> AsyncGenerator[Hosted]:
    """A host, from where its disk says that its session stands to the end of the block."""
    host = Hosted(
        disk or CrashingDisk(), MemoryRunner(script), answer_longest, end_earlier, stopped_by
    )
    records: tuple[AnyRecord, ...] = resumed(host.book.session, at_ms=NOW, reason="killed")
    if not host.book.seq:
        records = (SessionOpened("s1", "/p", "d1", "puppet", NOW), *records)
    await host.book.write(*records)
    async with background_tasks() as tasks:
        tasks.start_soon(host.turns.run)
        yield host
    host.book.close()


async def until(
    call: HostClient, holds: Callable[[AnyRecord], bool], *, after: int = 0
) -> list[RecordReceived]:
    """All records after one, up to the first for which something holds."""
    found: list[RecordReceived] = []
    with anyio.fail_after(3600):
        async for news in call.watch(after=after):
            for each in news:
                if isinstance(each, RecordReceived):
                    found.append(each)
                    if holds(each.record):
                        return found
    raise AssertionError("it goes on for ever")
