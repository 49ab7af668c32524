"""What was put is in order, and counts as kept only when the reader looks again."""

from __future__ import annotations

import anyio
import pytest

from holdfast.agent.model import TurnDelta, TurnDeltaKind, TurnNote
from holdfast.agent.turn_context import TurnQueue

pytestmark = pytest.mark.anyio
ONE, TWO = TurnNote("1"), TurnNote("2")


async def test_nobody_acts_before_it_is_kept() -> None:
    queue = TurnQueue()
    acted = False

    async def act() -> None:
        nonlocal acted
        await queue.kept()
        acted = True

    queue.put(ONE, TWO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(act)
        assert list(await queue.take()) == [ONE, TWO]
        await anyio.wait_all_tasks_blocked()
        assert not acted
        tasks.start_soon(queue.take)
        await anyio.wait_all_tasks_blocked()
        assert acted
        queue.put(ONE)


async def test_what_is_only_shown_may_be_left_out() -> None:
    queue = TurnQueue()
    for _ in range(10_000):
        queue.show(TurnDelta("1", TurnDeltaKind.TEXT, "x"))
    queue.put(ONE)

    taken = await queue.take()

    assert (len(taken), taken[-1]) == (5_001, ONE)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_once_nobody_reads_nobody_waits_and_it_is_said_what_became_of_it(
    *, is_kept: bool
) -> None:
    queue = TurnQueue()
    queue.put(ONE)
    await queue.take()
    queue.close(is_kept=is_kept)

    assert await queue.kept() == is_kept
    queue.put(TWO)
    assert not await queue.kept()
