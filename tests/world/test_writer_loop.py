"""Blocking work runs in one thread, in order, and its outcome comes back."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from holdfast.failures import Failure, UnexpectedError
from holdfast.world.commit_loop import GroupCommit
from holdfast.world.disk import SystemDisk
from holdfast.world.failures import DiskFull
from holdfast.world.journal import Journal
from holdfast.world.schema import Schema
from holdfast.world.writer_loop import WriterThread, in_thread

pytestmark = pytest.mark.anyio


async def test_work_runs_in_one_other_thread_in_order() -> None:
    ran: list[tuple[int, int]] = []

    def work(number: int) -> int:
        ran.append((number, threading.get_ident()))
        return number

    with WriterThread() as thread:
        results = await asyncio.gather(
            *(thread.run(lambda number=number: work(number)) for number in range(5))
        )

    assert results == [0, 1, 2, 3, 4]
    assert [number for number, _ in ran] == [0, 1, 2, 3, 4]
    assert len({ident for _, ident in ran} - {threading.get_ident()}) == 1


async def test_what_work_raises_comes_back_as_a_failure() -> None:
    def full() -> int:
        raise DiskFull(path="/p")

    def bug() -> int:
        raise ZeroDivisionError

    with WriterThread() as thread:
        with pytest.raises(DiskFull):
            await thread.run(full)
        with pytest.raises(UnexpectedError):
            await thread.run(bug)
        assert await thread.run(lambda: 7) == 7


async def test_what_is_done_in_a_thread_of_its_own_holds_nobody_up() -> None:
    """And nobody leaves before it has ended."""
    goes_on = threading.Event()

    def slow() -> str:
        goes_on.wait(30)
        return threading.current_thread().name

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.lowlevel.checkpoint)
            asyncio.get_running_loop().call_later(0.01, scope.cancel)
            asyncio.get_running_loop().call_later(0.02, goes_on.set)
            name = await in_thread(slow)
    with pytest.raises(DiskFull):
        await in_thread(lambda: _full())

    assert (name, scope.cancel_called) == ("holdfast-writer", True)


def _full() -> int:
    raise DiskFull(path="/p")


async def test_nobody_need_wait_for_the_outcome() -> None:
    goes_on = threading.Event()

    def slow() -> int:
        goes_on.wait(10.0)
        return 1

    with WriterThread() as thread:
        task = asyncio.create_task(thread.run(slow))
        await anyio.lowlevel.checkpoint()
        task.cancel()
        await asyncio.wait([task])
        goes_on.set()
        assert await thread.run(lambda: 2) == 2


def test_a_closed_loop_does_not_stop_the_thread() -> None:
    goes_on, ended = threading.Event(), threading.Event()

    def slow() -> int:
        goes_on.wait(10.0)
        ended.set()
        return 1

    async def leave(thread: WriterThread) -> None:
        asyncio.create_task(thread.run(slow))  # noqa: RUF006  # it is to be forgotten
        await anyio.lowlevel.checkpoint()

    with WriterThread() as thread:
        asyncio.run(leave(thread))
        goes_on.set()
        assert asyncio.run(thread.run(lambda: 3)) == 3
    assert ended.is_set()


async def test_what_is_under_way_when_it_ends_is_finished_and_told() -> None:
    goes_on = threading.Event()

    def slow() -> int:
        goes_on.wait(10.0)
        return 1

    told: list[int | Failure] = []
    with WriterThread() as thread:
        thread.start(slow, told.append)
        thread.start(lambda: 2, told.append)
        goes_on.set()
    assert told == []  # not before the event loop has its turn
    await anyio.lowlevel.checkpoint()

    assert told == [1, 2]


async def test_work_for_which_nobody_is_there_is_refused() -> None:
    thread = WriterThread()
    with pytest.raises(AssertionError, match="nobody is there"):
        await thread.run(lambda: 1)
    with thread:
        assert await thread.run(lambda: 2) == 2
    with pytest.raises(AssertionError, match="nobody is there"):
        await thread.run(lambda: 3)


async def test_two_event_loops_cannot_have_it_at_once() -> None:
    with WriterThread() as thread:
        assert await thread.run(lambda: 1) == 1
        with pytest.raises(AssertionError, match="another event loop"):
            await anyio.to_thread.run_sync(lambda: asyncio.run(thread.run(lambda: 2)))
        assert await thread.run(lambda: 3) == 3


async def test_more_orders_than_a_pipe_has_room_for_are_all_done() -> None:
    goes_on, told = threading.Event(), list[int | Failure]()

    def first() -> int:
        goes_on.wait(10.0)
        return 0

    with WriterThread() as thread:
        thread.start(first, told.append)
        for _ in range(70_000):
            thread.start(lambda: 1, told.append)
        goes_on.set()
        assert await thread.run(lambda: 2) == 2

    assert told == [0] + [1] * 70_000


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_serves_uvloop_too() -> None:
    with WriterThread() as thread:
        assert [await thread.run(lambda n=n: n) for n in range(3)] == [0, 1, 2]


async def test_many_tasks_append_to_a_real_file(tmp_path: Path) -> None:
    journal = Journal.open(SystemDisk(), tmp_path / "log", schema=Schema("t", 1), log="log1")
    with WriterThread() as thread:
        log = GroupCommit(journal, run=thread.start)

        async def repeat(name: int) -> None:
            for number in range(5):
                await log.append([name, number])

        async with anyio.create_task_group() as tasks:
            for name in range(20):
                tasks.start_soon(repeat, name)

    found = [entry.data for entry in journal.read()]
    journal.close()
    assert sorted(found) == sorted(b"[%d,%d]" % (n, m) for n in range(20) for m in range(5))
