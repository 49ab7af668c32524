"""Input is written once, whole and in order, whatever happens on the way."""

from __future__ import annotations

import anyio
import pytest

from holdfast.exec.failures import StdinClosed
from tests.exec.stage import echoes, stage
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


@pytest.mark.promise("X7")
async def test_what_is_under_way_at_a_cut_is_written_once() -> None:
    async with stage() as (client, server):
        process = await client.start(echoes(1000))
        for number in range(50):
            server.links[-1][number % 2].outgoing.cut_after = 7 * number
            await process.write(b"%d " % number)

        written = server.all_processes[0].written.values()
        assert b"".join(written).split() == [b"%d" % number for number in range(50)]


async def test_large_input_is_cut_up_and_arrives_whole() -> None:
    data = bytes(range(256)) * 5000
    async with stage() as (client, server):
        process = await client.start(echoes(1000))
        await process.write(data)

        written = server.all_processes[0].written.values()
        assert b"".join(written) == data
        assert len(written) > 1


async def test_who_stops_waiting_takes_a_write_back_whole_or_not_at_all() -> None:
    async with stage() as (client, server):
        process = await client.start(echoes(1000))
        server.links[-1][0].outgoing.delay = 1.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.write, b"first")
            await anyio.sleep(0.1)
            with anyio.move_on_after(0.1):
                await process.write(b"second")
            tasks.start_soon(process.write, b"third")

        assert list(server.all_processes[0].written.values()) == [b"first", b"third"]


async def test_after_the_close_nothing_is_written() -> None:
    async with stage() as (client, server):
        process = await client.start(echoes(1000))
        process.stdin.put(b"before")
        await process.close_stdin()

        with pytest.raises(StdinClosed):
            await process.write(b"after")
        assert list(server.all_processes[0].written.values()) == [b"before"]
        assert server.all_processes[0].stdin_closed
