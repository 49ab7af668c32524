"""What can be asked of a process, and what is said when a cut comes in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from holdfast.exec.client.process import Process
from holdfast.exec.failures import CapabilityMissing, OutcomeUnknown
from holdfast.exec.model import Closed, Exited
from tests.exec.stage import echoes, prints, stage
from tests.simulation.clock import VirtualTimeLoop
from tests.simulation.exec_server import Traits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=1)}


async def test_it_ends_when_it_is_terminated() -> None:
    async with stage() as (client, _):
        process = await client.start(echoes(1000))

        assert await process.terminate()
        assert await process.wait() == process.status == 137
        assert [event async for event in process.events()] == [Exited(1, 137), Closed(2)]
        assert await process.receive() == []
        assert not await process.terminate()


@pytest.mark.promise("X7")
@pytest.mark.parametrize(
    "call",
    [Process.terminate, Process.signal, Process.close_stdin],
    ids=["terminate", "signal", "close_stdin"],
)
async def test_the_outcome_of_a_change_at_the_cut_is_unknown(
    call: Callable[[Process], Awaitable[object]],
) -> None:
    async with stage() as (client, server):
        process = await client.start(echoes(1000))
        server.links[-1][0].outgoing.delay = 1.0

        async def cut() -> None:
            await anyio.sleep(0.5)
            server.links[-1][0].cut()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            with pytest.raises(OutcomeUnknown):
                await call(process)
        assert await process.terminate()


@pytest.mark.parametrize(
    "call",
    [
        Process.close_stdin,
        lambda process: process.resize(rows=1, cols=2),
        lambda process: process.signal("hangup"),
    ],
    ids=["close_stdin", "resize", "signal"],
)
async def test_what_the_server_cannot_do_is_not_asked(
    call: Callable[[Process], Awaitable[object]],
) -> None:
    async with stage(Traits(is_ours=False)) as (client, _):
        process = await client.start(prints(1))

        with pytest.raises(CapabilityMissing):
            await call(process)


async def test_what_it_wrote_can_be_read_again() -> None:
    async with stage() as (client, _):
        process = await client.start(prints(3))
        events = [event async for event in process.events()]

        page = await process.recall(after=1, bytes_max=1000)

    assert list(page.chunks) == events[1:3]


@pytest.mark.promise("X14")
async def test_a_server_that_cannot_forget_is_not_asked_to() -> None:
    async with stage(Traits(is_ours=False)) as (client, _):
        process = await client.start(prints(1))
        await process.wait()

        await process.forget()

        assert await process.receive()  # it is as readable as before
