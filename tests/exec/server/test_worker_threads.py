"""Work that blocks is done elsewhere, and comes back as it went."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from holdfast.exec.failures import RequestUnfit
from holdfast.exec.server.worker_threads import Hands

pytestmark = pytest.mark.anyio


async def test_a_result_or_a_failure_comes_back() -> None:
    def fail() -> str:
        raise RequestUnfit(reason="no")

    with Hands() as hands:
        result = await hands.do(lambda: "done")
        with pytest.raises(RequestUnfit) as refused:
            await hands.do(fail)

    assert result == "done"
    assert refused.value.reason == "no"


async def test_one_that_is_slow_keeps_nobody_but_its_own_lane() -> None:
    gate = threading.Event()
    done: list[str] = []

    async def do(hands: Hands, name: str, lane: int | None) -> None:
        await hands.do(lambda: done.append(name), lane=lane)

    with Hands() as hands:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: hands.do(gate.wait, lane=1))
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(do, hands, "same lane", 5)
            await do(hands, "another", None)
            await do(hands, "other lane", 2)
            gate.set()

    assert done == ["another", "other lane", "same lane"]
