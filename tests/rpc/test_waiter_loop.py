"""A request has one outcome, and whoever leaves before it comes gives the request up."""

from __future__ import annotations

import anyio
import pytest
from msgspec import Raw

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionLost, RequestTimedOut
from holdfast.rpc.model import Answer
from holdfast.rpc.waiter_loop import Waiter

pytestmark = pytest.mark.anyio

ANSWER = Answer(1, Raw(b"{}"))
LOST = ConnectionLost(reason="cut")


def waiter(forgotten: list[Waiter]) -> Waiter:
    return Waiter(1, "m", limit=1.0, forget=forgotten.append)


@pytest.mark.parametrize("outcome", [ANSWER, LOST])
async def test_whoever_waits_gets_the_first_outcome(outcome: Answer | Failure) -> None:
    forgotten: list[Waiter] = []
    got: list[object] = []

    async def wait() -> None:
        with one:
            try:
                got.append(await one.answer())
            except Failure as failure:
                got.append(failure)

    one = waiter(forgotten)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert not one.is_settled
        one.settle(outcome)
        one.settle(RequestTimedOut(method="m", limit=1.0))

    assert (got, forgotten, one.is_settled) == ([outcome], [one], True)
    assert got[0] is not LOST, "each gets a failure of its own"


async def test_an_outcome_that_comes_first_is_not_waited_for() -> None:
    one = waiter([])
    one.settle(ANSWER)

    assert await one.answer() == ANSWER


async def test_an_outcome_that_comes_after_all_were_cancelled_hurts_nobody() -> None:
    forgotten: list[Waiter] = []
    with anyio.move_on_after(0), waiter(forgotten) as one:
        await one.answer()
    one.settle(ANSWER)

    assert forgotten == [one]
