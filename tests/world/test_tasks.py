"""Tasks that accompany a block end with it, and leave what it raises alone."""

from __future__ import annotations

import anyio
import pytest
from anyio.abc import TaskGroup

from holdfast.failures import Failure
from holdfast.world.failures import DiskFull
from holdfast.world.tasks import background_tasks

pytestmark = pytest.mark.anyio


async def test_they_end_with_the_block() -> None:
    ended: list[str] = []

    async def accompany() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    async with background_tasks() as tasks:
        tasks.start_soon(accompany)
        await anyio.wait_all_tasks_blocked()

    assert ended == ["ended"]


@pytest.mark.parametrize("error", [ValueError("plain"), DiskFull(path="x")])
async def test_what_the_block_raises_goes_on_in_no_group(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            raise error

    assert caught.value is error


async def test_a_failure_of_one_of_them_ends_the_block_with_it() -> None:
    async def fail() -> None:
        raise DiskFull(path="x")

    with pytest.raises(Failure) as caught:
        async with background_tasks() as tasks:
            tasks.start_soon(fail)
            await anyio.sleep_forever()

    assert caught.value == DiskFull(path="x")


async def test_one_of_them_can_end_the_block() -> None:
    async with background_tasks() as tasks:
        tasks.start_soon(_end, tasks)
        await anyio.sleep_forever()


async def _end(tasks: TaskGroup) -> None:
    tasks.cancel_scope.cancel()


async def test_who_cancels_the_block_is_not_told_otherwise() -> None:
    with anyio.move_on_after(0.01) as scope:
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            await anyio.sleep_forever()

    assert scope.cancelled_caught
