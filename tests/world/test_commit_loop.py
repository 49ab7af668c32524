"""Appenders share the cost of a sync; each learns its own outcome, and none is forgotten."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from holdfast.failures import Failure, UnexpectedError
from holdfast.nouns import Cursor
from holdfast.world import commit_loop
from holdfast.world.commit_loop import GroupCommit
from holdfast.world.failures import DiskFull, RecordRefused
from holdfast.world.journal import Journal
from holdfast.world.memory import CrashingDisk
from holdfast.world.schema import Schema
from holdfast.world.testing import run_inline
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(5))
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


class SlowDisk:
    """Runs each batch after a second, and notes how many records were in it."""

    def __init__(self) -> None:
        self.disk = CrashingDisk()
        self.journal = Journal.open(self.disk, Path("/d/log"), schema=Schema("t", 1), log="log1")
        self.sizes: list[int] = []
        self.seconds = 1.0
        self.log = GroupCommit(self.journal, run=self.run)

    def run(self, work: Callable[[], int], tell: Callable[[int | Failure], None]) -> None:
        def measured() -> int:
            before = self.journal.seq
            first = work()
            self.sizes.append(self.journal.seq - before)
            return first

        asyncio.get_running_loop().call_later(self.seconds, run_inline, measured, tell)

    def kept(self) -> list[bytes]:
        return [entry.data for entry in self.journal.read()]


async def append_all(log: GroupCommit, values: list[object]) -> dict[object, Cursor | Failure]:
    outcomes: dict[object, Cursor | Failure] = {}

    async def one(value: object) -> None:
        try:
            outcomes[value] = await log.append(value)
        except Failure as failure:
            outcomes[value] = failure

    async with anyio.create_task_group() as tasks:
        for value in values:
            tasks.start_soon(one, value)
    return outcomes


async def test_all_who_come_meanwhile_share_the_next_batch() -> None:
    slow = SlowDisk()
    outcomes = await append_all(slow.log, list(range(10)))

    assert slow.sizes == [1, 9]
    assert sorted(cursor.sequence for cursor in outcomes.values()) == list(range(1, 11))
    kept = slow.kept()
    assert {value: kept[cursor.sequence - 1] for value, cursor in outcomes.items()} == {
        value: b"%d" % value for value in range(10)
    }
    assert anyio.current_time() == 2.0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # in the order of a real loop
async def test_appenders_that_come_back_at_once_stay_together() -> None:
    slow = SlowDisk()
    slow.seconds = 0.001

    async def repeat() -> None:
        for _ in range(5):
            await slow.log.append("x")

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(repeat)

    assert slow.sizes == [1, 8, 8, 8, 8, 7]


async def test_an_append_is_acknowledged_only_when_it_is_durable() -> None:
    slow = SlowDisk()

    async def one(value: int) -> None:
        cursor = await slow.log.append(value)
        for seed in range(10):  # the power fails the moment it is told
            disk = slow.disk.crash(seed)
            found = Journal.open(disk, Path("/d/log"), schema=Schema("t", 1), log="log1")
            assert [entry.data for entry in found.read()][cursor.sequence - 1] == b"%d" % value

    async with anyio.create_task_group() as tasks:
        for value in range(10):
            tasks.start_soon(one, value)


async def test_a_failure_reaches_exactly_those_in_the_batch() -> None:
    slow = SlowDisk()
    slow.disk.trouble.errors[slow.disk.operations + 4 + 2] = errno.ENOSPC  # in the second batch
    outcomes = await append_all(slow.log, list(range(10)))
    failed = [value for value, outcome in outcomes.items() if isinstance(outcome, Failure)]

    assert slow.sizes == [1]
    assert len(failed) == 9
    assert {str(outcomes[value]) for value in failed} == {str(DiskFull(path="/d/log"))}
    assert len({id(outcomes[value]) for value in failed}) == 9
    assert (await slow.log.append("again")).sequence == 2


async def test_a_record_that_is_refused_harms_nobody_else() -> None:
    slow = SlowDisk()
    outcomes = await append_all(slow.log, [1, "\ud800", 2])

    assert isinstance(outcomes["\ud800"], RecordRefused)
    assert sorted(slow.kept()) == [b"1", b"2"]


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("cancelled", [{0}, {1}, {0, 1}, {1, 2, 3}, {5}])
async def test_cancelling_appenders_harms_nobody_else(at: float, cancelled: set[int]) -> None:
    slow = SlowDisk()
    outcomes: dict[int, Cursor] = {}
    scopes: dict[int, anyio.CancelScope] = {}

    async def one(value: int) -> None:
        with anyio.CancelScope() as scopes[value]:
            outcomes[value] = await slow.log.append(value)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for value in range(6):
                tasks.start_soon(one, value)
            await anyio.sleep(at)
            for value in cancelled & scopes.keys():
                scopes[value].cancel()
        last = await slow.log.append("last")

    kept = slow.kept()
    assert {0, 1, 2, 3, 4, 5} - cancelled <= outcomes.keys()
    assert all(kept[cursor.sequence - 1] == b"%d" % value for value, cursor in outcomes.items())
    assert last.sequence == len(kept)


@pytest.mark.parametrize("victim", range(4))
@pytest.mark.parametrize("at", [0.5, 1.0, 1.5])
async def test_a_task_torn_away_by_others_leaves_nobody_waiting(at: float, victim: int) -> None:
    slow = SlowDisk()
    outcomes: dict[int, Cursor] = {}

    async def one(value: int) -> None:
        outcomes[value] = await slow.log.append(value)

    tasks = [asyncio.create_task(one(value)) for value in range(4)]
    await anyio.sleep(at)
    tasks[victim].cancel()  # not by a scope
    with anyio.fail_after(60):
        await asyncio.wait(tasks)
        last = await slow.log.append("last")

    kept = slow.kept()
    assert {0, 1, 2, 3} - {victim} <= outcomes.keys()
    assert all(kept[cursor.sequence - 1] == b"%d" % value for value, cursor in outcomes.items())
    assert kept[last.sequence - 1] == b'"last"'


async def test_too_much_at_once_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_loop, "_BATCH_MAX", 4)
    slow = SlowDisk()
    outcomes = await append_all(slow.log, list(range(20)))

    assert sorted(cursor.sequence for cursor in outcomes.values()) == list(range(1, 21))
    assert max(slow.sizes) == 4


async def test_a_bug_below_reaches_the_appenders_as_a_failure() -> None:
    slow = SlowDisk()

    def bug() -> int:
        raise ZeroDivisionError

    def broken(_work: Callable[[], int], tell: Callable[[int | Failure], None]) -> None:
        slow.run(bug, tell)

    outcomes = await append_all(GroupCommit(slow.journal, run=broken), [1, 2, 3])

    assert {type(outcome) for outcome in outcomes.values()} == {UnexpectedError}


async def test_it_runs_inline_where_there_are_no_threads() -> None:
    slow = SlowDisk()

    assert await GroupCommit(slow.journal, run=run_inline).append("x") == Cursor("log1", 1)
