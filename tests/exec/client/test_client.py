"""A client over connections that come and go, in virtual time."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import NoReturn

import anyio
import pytest

from holdfast.exec.client.client import Client
from holdfast.exec.client.process import Process
from holdfast.exec.client.transport import ProcessTransport
from holdfast.exec.failures import (
    CapabilityMissing,
    ProcessExists,
    RecoveryTimedOut,
    ReplayGap,
    SessionExpired,
)
from holdfast.exec.model import ClientState, Closed
from holdfast.rpc.failures import AnswerInvalid, ConnectionClosed, SocketRefused
from tests.exec.stage import POLICY, echoes, prints, stage
from tests.simulation.clock import VirtualTimeLoop
from tests.simulation.exec_server import SimServer, Traits

pytestmark = pytest.mark.anyio


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


async def events_of(process: Process) -> list[object]:
    return [event async for event in process.events()]


async def test_nobody_to_connect_to_is_said_in_the_end() -> None:
    async def dial() -> NoReturn:
        raise SocketRefused(path="nowhere", reason="nobody")

    with pytest.raises(RecoveryTimedOut):
        async with Client(dial, policy=POLICY):
            pass


async def test_an_error_of_the_block_goes_on_as_it_is() -> None:
    async with anyio.create_task_group() as tasks:
        server = SimServer(random.Random(1), tasks, Traits())
        with pytest.raises(LookupError):
            async with Client(server.dial, policy=POLICY):
                raise LookupError
        tasks.cancel_scope.cancel()


@pytest.mark.promise("X1", "X2")
async def test_calls_wait_while_it_recovers_and_handles_stay() -> None:
    async with stage() as (client, server):
        process = await client.start(prints(20))
        session = client.session_id
        server.refuses = True
        server.links[-1][0].cut()
        await anyio.sleep(1.0)
        assert client.state is ClientState.RECOVERING

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.start, prints(1))
            await anyio.sleep(5.0)
            assert len(server.all_processes) == 1
            server.refuses = False

        assert (client.state, client.session_id) == (ClientState.CONNECTED, session)
        assert await events_of(process) == server.all_processes[0].events


@pytest.mark.promise("X8")
async def test_a_server_that_forgot_the_session_ends_everything_with_one_failure() -> None:
    async with stage() as (client, server):
        process = await client.start(echoes(100))
        server.restart(keeps_state=False)

        failure = await client.wait_failed()

        assert isinstance(failure, SessionExpired)
        assert failure.session == "session-1"
        for call in (process.wait, process.terminate, process.receive, lambda: process.write(b"x")):
            with pytest.raises(SessionExpired):
                await call()
        with pytest.raises(SessionExpired):
            await client.start(prints(1))


@pytest.mark.promise("X1")
async def test_another_session_is_not_taken_for_ours() -> None:
    async with stage() as (client, server):
        await client.start(prints(1))
        server.sessions["session-1"].id = "session-2"
        server.links[-1][0].cut()

        assert isinstance(await client.wait_failed(), AnswerInvalid)


async def test_closing_it_ends_whoever_waits() -> None:
    async with stage() as (client, _):
        process = await client.start(echoes(100))

    with pytest.raises(ConnectionClosed):
        await process.wait()


@pytest.mark.promise("X5")
async def test_a_gap_ends_one_process_and_terminates_it() -> None:
    async with stage(Traits(is_ours=False, retained_max=5)) as (client, server):
        loud, quiet = await client.start(prints(80)), await client.start(echoes(60))
        server.refuses = True
        server.links[-1][0].cut()
        await anyio.sleep(15.0)
        server.refuses = False

        with pytest.raises(ReplayGap):
            await events_of(loud)
        await quiet.write(b"hello")
        assert (await events_of(quiet))[-2:] == server.all_processes[1].events[-2:]
        assert server.running() == []


async def test_a_slow_reader_holds_little_and_misses_nothing() -> None:
    async with stage(unread_bytes_max=20) as (client, server):
        process = await client.start(prints(60))
        assert await process.wait() == 7

        assert await events_of(process) == server.all_processes[0].events


async def test_an_id_can_be_used_again_once_its_process_is_over() -> None:
    async with stage() as (client, server):
        first = await client.start(prints(1), process_id="p")
        with pytest.raises(ProcessExists):
            await client.start(prints(1), process_id="p")
        assert isinstance((await events_of(first))[-1], Closed)

        with pytest.raises(ProcessExists):  # this server keeps it for a while
            await client.start(prints(1), process_id="p")
        del server.sessions["session-1"].processes["p"]
        assert (await client.start(prints(1), process_id="p")).id == "p"


async def test_what_the_server_cannot_do_is_not_asked() -> None:
    async with stage() as (client, _):
        with pytest.raises(CapabilityMissing):
            await client.processes()


async def test_a_client_that_nobody_takes_over_is_waited_for() -> None:
    async with stage(Traits(takeover=False)) as (client, server):
        process = await client.start(prints(30))
        near, far = server.links[-1]
        near.outgoing.delay = far.outgoing.delay = 100.0  # half open: nobody is told
        await near.aclose()
        await anyio.sleep(3.0)
        assert client.state is ClientState.RECOVERING
        far.cut()

        assert await events_of(process) == server.all_processes[0].events


def test_a_client_knows_what_its_server_may_say() -> None:
    script = "import holdfast.exec.client.client; from holdfast.failures.base import type_of"
    said = {"DISK_FULL", "DISK_UNUSABLE", "PLACE_LOST", "SANDBOX_UNAVAILABLE", "EXEC_START_FAILED"}
    told = subprocess.run(
        [sys.executable, "-c", f"{script}; print(sorted({said} - type_of.keys()))"],
        env={"PYTHONPATH": "src"},
        capture_output=True,
        check=True,
    )

    assert told.stdout == b"[]\n"


async def test_who_is_cancelled_can_still_end_what_was_started() -> None:
    async with anyio.create_task_group() as tasks:
        server = SimServer(random.Random(1), tasks, Traits())
        with anyio.CancelScope() as scope:
            async with Client(server.dial, policy=POLICY) as client:
                transport = ProcessTransport(await client.start(echoes(60.0)))
                try:
                    scope.cancel()
                    await anyio.sleep_forever()
                finally:
                    await transport.aclose()
        assert [process.status for process in server.all_processes] == [137]
        tasks.cancel_scope.cancel()
