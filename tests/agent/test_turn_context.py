"""What was put is in order, and counts as kept only when the reader looks again."""

from __future__ import annotations

import anyio
import pytest

from holdfast.agent.model import TurnDelta, TurnDeltaKind, TurnNote
from holdfast.agent.turn_context import TurnQueue

pytestmark = pytest.mark.anyio
ONE, TWO = TurnNote("1"), TurnNote("2")


async def test_nobody_acts_before_it_is_kept() -> None:
    outbox = TurnQueue()
    acted = False

    async def act() -> None:
        nonlocal acted
        await outbox.kept()
        acted = True

    outbox.put(ONE, TWO)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(act)
        assert list(await outbox.take()) == [ONE, TWO]
        await anyio.wait_all_tasks_blocked()
        assert not acted
        tasks.start_soon(outbox.take)
        await anyio.wait_all_tasks_blocked()
        assert acted
        outbox.put(ONE)


async def test_what_is_only_shown_may_be_left_out() -> None:
    outbox = TurnQueue()
    for _ in range(10_000):
        outbox.show(TurnDelta("1", TurnDeltaKind.TEXT, "x"))
    outbox.put(ONE)

    taken = await outbox.take()

    assert (len(taken), taken[-1]) == (5_001, ONE)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_once_nobody_reads_nobody_waits_and_it_is_said_what_became_of_it(
    *, is_kept: bool
) -> None:
    outbox = TurnQueue()
    outbox.put(ONE)
    await outbox.take()
    outbox.close(is_kept=is_kept)

    assert await outbox.kept() == is_kept
    outbox.put(TWO)
    assert not await outbox.kept()
