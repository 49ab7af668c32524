"""A start that was cut off is cleaned up or continued, and its id is safe meanwhile."""

from __future__ import annotations

import anyio
import pytest

from holdfast.exec.failures import OutcomeUnknown, ProcessExists, SessionExpired
from tests.exec.stage import echoes, prints, stage
from tests.simulation.clock import VirtualTimeLoop
from tests.simulation.exec_server import Traits

pytestmark = pytest.mark.anyio

SLOW = Traits(start_delay=1.0)


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


@pytest.mark.promise("X6")
async def test_what_was_started_at_the_cut_is_ended() -> None:
    async with stage() as (client, server):
        server.links[-1][1].outgoing.tamper = lambda m: () if b"sandboxType" in m else (m,)
        async with anyio.create_task_group() as tasks:

            async def start() -> None:
                with pytest.raises(OutcomeUnknown):
                    await client.start(echoes(1000), process_id="p")

            tasks.start_soon(start)
            await anyio.sleep(1.0)
            assert len(server.running()) == 1
            with pytest.raises(ProcessExists):
                await client.start(prints(1), process_id="p")
            server.links[-1][0].cut()
        assert server.running() == []


@pytest.mark.promise("X6")
async def test_what_was_started_at_the_cut_is_continued_if_asked_for() -> None:
    async with stage() as (client, server):
        server.links[-1][1].outgoing.tamper = lambda m: () if b"sandboxType" in m else (m,)

        async def cut() -> None:
            await anyio.sleep(1.0)
            server.links[-1][0].cut()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            process = await client.start(prints(9), continue_if_started=True)

        assert process.was_continued
        assert [event async for event in process.events()] == server.all_processes[0].events


@pytest.mark.promise("X6")
async def test_what_was_not_started_at_the_cut_cannot_be_continued() -> None:
    async with stage() as (client, server):
        server.links[-1][0].outgoing.cut_after = 10

        with pytest.raises(OutcomeUnknown):
            await client.start(prints(9), continue_if_started=True)
        assert server.all_processes == []


class _ForGood(dict[str, anyio.CancelScope]):
    """What is being started, and stays so."""

    def __delitem__(self, key: str) -> None:
        pass


@pytest.mark.promise("X6", "X8")
async def test_what_is_being_started_for_ever_is_given_up() -> None:
    async with stage(Traits(start_delay=1000.0)) as (client, server):

        async def cut() -> None:
            """As Codex does it: the id stays taken by a start that nobody goes on with."""
            await anyio.sleep(1.0)
            server.links[-1][0].cut()
            [session] = server.sessions.values()
            session.starting = _ForGood(p=anyio.CancelScope())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            with pytest.raises(OutcomeUnknown), anyio.fail_after(20):
                await client.start(prints(9), process_id="p", continue_if_started=True)
        assert server.all_processes == []


@pytest.mark.promise("X6")
async def test_a_start_that_nobody_waits_for_any_more_is_ended() -> None:
    async with stage(SLOW) as (client, server):
        with anyio.move_on_after(0.5):
            await client.start(echoes(1000), process_id="p")
        await anyio.sleep(5.0)

        assert server.running() == []


@pytest.mark.promise("X8")
async def test_a_start_that_outlives_its_session_gets_the_failure_of_the_session() -> None:
    async with stage(SLOW) as (client, server):

        async def die() -> None:
            await anyio.sleep(0.5)
            server.restart(keeps_state=False)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(die)
            with pytest.raises(SessionExpired):
                await client.start(prints(1))
