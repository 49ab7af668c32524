"""What several tell, one reads: all of it, in order, and never too much at once."""

from __future__ import annotations

import anyio
import pytest

from holdfast.world.batch_queue import BatchQueue

pytestmark = pytest.mark.anyio


async def test_all_that_is_there_is_taken_at_once() -> None:
    inbox: BatchQueue[int] = BatchQueue()
    await inbox.put([1, 2])
    await inbox.put([3])

    assert await inbox.receive() == [1, 2, 3]


async def test_who_reads_waits_and_who_puts_too_much_waits() -> None:
    inbox: BatchQueue[int] = BatchQueue(items_max=2)
    got: list[list[int]] = []

    async def read() -> None:
        while sum(map(len, got)) < 5:
            got.append(await inbox.receive())

    async with anyio.create_task_group() as tasks:
        await inbox.put([1, 2])
        with anyio.move_on_after(0.05) as full:
            await inbox.put([3])
        assert full.cancelled_caught, "there was no room"
        tasks.start_soon(read)
        for number in (3, 4, 5):
            await inbox.put([number])

    assert [each for batch in got for each in batch] == [1, 2, 3, 4, 5]


async def test_all_who_wait_for_room_go_on() -> None:
    inbox: BatchQueue[int] = BatchQueue(items_max=1)
    got: list[int] = []
    await inbox.put([0])
    async with anyio.create_task_group() as tasks:
        for number in (1, 2, 3):
            tasks.start_soon(inbox.put, [number])
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(60):
            while len(got) < 4:
                got += await inbox.receive()

    assert sorted(got) == [0, 1, 2, 3]
