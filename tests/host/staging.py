"""A host in memory: a puppet for a runner, and callers on transports in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path

import anyio

from holdfast.failures import Failure
from holdfast.host.client import Call, Kept, called
from holdfast.host.journal import Book
from holdfast.host.model import AnyRecord, Opened, TurnClosed
from holdfast.host.ports import Delivered, Revisited
from holdfast.host.protocol import Role
from holdfast.host.server import Reception, Visit
from holdfast.host.session import resumed
from holdfast.host.turns import EndEarlier, Turns, nothing_earlier
from holdfast.rpc.transports.memory import pair
from holdfast.runners.memory import Puppet, Script
from holdfast.world import companions
from holdfast.world.testing import CrashingDisk, ManualClock, run_inline

PATH = Path("/state/journal.jsonl")
NOW = 1_000


class Bench:
    """A workshop in memory, which counts."""

    def __init__(self) -> None:
        self.prepared = 0
        self.causes: list[str] = []
        self.reported: list[tuple[int, Revisited | None]] = []
        self.delivered: list[str] = []
        self.refusal: Failure | None = None  # of what is to be published
        self.delay = 0.0  # that a publication takes

    async def prepare(self) -> None:
        self.prepared += 1

    async def revise(self, cause: str) -> Revisited | None:
        self.causes.append(cause)
        return Revisited(len(self.causes), f"cp_{len(self.causes)}")

    async def publish(self, key: str) -> Delivered:
        await anyio.sleep(self.delay)
        if self.refusal is not None:
            raise copy(self.refusal)
        self.delivered.append(key)
        return Delivered(1, f"cp_{key}")

    async def report(self, closed: TurnClosed, made: Revisited | None) -> str:
        self.reported.append((closed.turn, made))
        return f"/reports/{closed.turn}"


class Hosted:
    """A host that runs here, and what it stands on."""

    def __init__(
        self,
        disk: CrashingDisk,
        puppet: Puppet,
        answer_longest: float,
        end_earlier: EndEarlier,
        stopped_by: Callable[[int], str],
    ) -> None:
        self.disk, self.puppet, self.bench = disk, puppet, Bench()
        self.clock = ManualClock()
        self.book = Book.open(disk, PATH, name="s1", run=run_inline)
        self.reception = Reception(self.book, self.clock)
        self.turns = Turns(
            book=self.book,
            runner=puppet,
            workshop=self.bench,
            clock=self.clock,
            told=self.reception.show,
            troubled=self.reception.complain,
            answer_longest=answer_longest,
            end_earlier=end_earlier,
            stopped_by=stopped_by,
        )

    @asynccontextmanager
    async def call(
        self, role: Role = Role.LEAD, generation: int | None = None
    ) -> AsyncGenerator[Call]:
        ours, theirs = pair()
        async with companions() as tasks:
            tasks.start_soon(Visit(self.reception, self.turns).attend, theirs)
            async with called(ours, role=role, generation=generation) as call:
                yield call


@asynccontextmanager
async def hosted(
    script: Script,
    *,
    disk: CrashingDisk | None = None,
    answer_longest: float = 60.0,
    end_earlier: EndEarlier = nothing_earlier,
    stopped_by: Callable[[int], str] = lambda _: "",
) -> AsyncGenerator[Hosted]:
    """A host, from where its disk says that its session stands to the end of the block."""
    host = Hosted(disk or CrashingDisk(), Puppet(script), answer_longest, end_earlier, stopped_by)
    records: tuple[AnyRecord, ...] = resumed(host.book.session, at_ms=NOW, reason="killed")
    if not host.book.seq:
        records = (Opened("s1", "/p", "d1", "puppet", NOW), *records)
    await host.book.write(*records)
    async with companions() as tasks:
        tasks.start_soon(host.turns.run)
        yield host
    host.book.close()


async def until(call: Call, holds: Callable[[AnyRecord], bool], *, after: int = 0) -> list[Kept]:
    """All records after one, up to the first for which something holds."""
    found: list[Kept] = []
    with anyio.fail_after(3600):
        async for news in call.watch(after=after):
            for each in news:
                if isinstance(each, Kept):
                    found.append(each)
                    if holds(each.record):
                        return found
    raise AssertionError("it goes on for ever")
