"""Work that blocks is done elsewhere, and comes back as it went."""

from __future__ import annotations

import threading

import anyio
import anyio.lowlevel
import pytest

from holdfast.exec.failures import RequestUnfit
from holdfast.exec.server.worker_threads import WorkerThreads

pytestmark = pytest.mark.anyio


async def test_a_result_or_a_failure_comes_back() -> None:
    def fail() -> str:
        raise RequestUnfit(reason="no")

    with WorkerThreads() as workers:
        result = await workers.do(lambda: "done")
        with pytest.raises(RequestUnfit) as refused:
            await workers.do(fail)

    assert result == "done"
    assert refused.value.reason == "no"


async def test_one_that_is_slow_keeps_nobody_but_its_own_lane() -> None:
    gate = threading.Event()
    done: list[str] = []

    async def do(workers: WorkerThreads, name: str, lane: int | None) -> None:
        await workers.do(lambda: done.append(name), lane=lane)

    with WorkerThreads() as workers:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: workers.do(gate.wait, lane=1))
            await anyio.lowlevel.checkpoint()
            tasks.start_soon(do, workers, "same lane", 5)
            await do(workers, "another", None)
            await do(workers, "other lane", 2)
            gate.set()

    assert done == ["another", "other lane", "same lane"]
