"""A server in a network of its own is found again, whatever the cable to it goes through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from holdfast.exec import Client, RecoveryPolicy
from holdfast.exec.model import ClientState
from holdfast.rpc import PingPolicy, WebSocketLimits, connect_websocket
from tests.exec.server.talking import served, until
from tests.faults.test_exec_chaos import heard, printer, shell
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_server import lines
from tests.parts.netns import Network, network

pytestmark = [pytest.mark.anyio, linux_only]

POLICY = RecoveryPolicy(
    window=60.0, wait_first=0.05, wait_longest=0.5, settled=0.05, answer_longest=5.0
)
IMPATIENT = WebSocketLimits(pulse=PingPolicy(every=0.5, silence_longest=1.0))
OUTAGE = 1.5  # longer than an impatient client believes in a silent connection


@asynccontextmanager
async def far_away(
    state: Path, limits: WebSocketLimits = IMPATIENT
) -> AsyncGenerator[tuple[Network, Client]]:
    """A server in another network, and a client of it in ours."""
    with network() as cable:
        token, listen = state.parent / "token", f"ws://{cable.far}:0"
        options = ("--token-file", str(token))
        async with served(state, *options, listen=listen, through=cable.inside) as server:
            secret = token.read_text().strip()
            dial = partial(connect_websocket, server.url, token=secret, limits=limits)
            async with Client(dial, policy=POLICY) as client:
                yield cable, client


async def unplugged(cable: Network, client: Client) -> None:
    cable.unplug()
    await until(lambda: client.state is ClientState.RECOVERING)
    await anyio.sleep(OUTAGE)
    cable.plug_in()


async def misled(cable: Network, client: Client) -> None:
    cable.mislead()
    await until(lambda: client.state is ClientState.RECOVERING)
    cable.lead()


async def moved(cable: Network, client: Client) -> None:
    cable.remove()
    await until(lambda: client.state is ClientState.RECOVERING)
    cable.move()


Fault = Callable[[Network, Client], Awaitable[None]]


@pytest.mark.promise("X3", "X4", "X9")
@pytest.mark.parametrize("fault", [unplugged, moved, pytest.param(misled, marks=pytest.mark.long)])
async def test_a_client_finds_its_server_again_and_nothing_is_lost(
    tmp_path: Path, fault: Fault
) -> None:
    async with far_away(tmp_path / "state") as (cable, client):
        process = await client.start(printer(200, 0.01))
        await fault(cable, client)

        assert await heard(process) == (lines(200), 0)
        assert (await client.files.metadata("/")).is_directory


@pytest.mark.promise("X4")
async def test_a_cable_that_drops_packets_costs_time_and_no_byte(tmp_path: Path) -> None:
    expected = "".join(f"{number}\n" for number in range(1, 200_001))
    async with far_away(tmp_path / "state", WebSocketLimits()) as (cable, client):
        cable.starve()
        process = await client.start(shell("seq 1 200000; exit 3"))

        assert await heard(process) == (expected, 3)
        assert cable.dropped > 10


@pytest.mark.promise("X4", "X7")
async def test_a_cable_that_comes_back_in_time_is_not_noticed(tmp_path: Path) -> None:
    async with far_away(tmp_path / "state", WebSocketLimits()) as (cable, client):
        process = await client.start(shell("head -n 2", has_stdin=True))
        await process.write(b"one\n")
        cable.unplug()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.write, b"two\n")
            await anyio.sleep(0.5)
            cable.plug_in()

        assert await heard(process) == ("one\ntwo\n", 0)
        assert client.state is ClientState.CONNECTED


@pytest.mark.long
@pytest.mark.promise("X3", "X4", "X9")
async def test_a_cable_that_is_unplugged_for_longer_than_both_sides_believe_in_it(
    tmp_path: Path,
) -> None:
    async with far_away(tmp_path / "state", WebSocketLimits()) as (cable, client):
        process = await client.start(printer(500, 0.05))
        cable.unplug()
        await until(lambda: client.state is ClientState.RECOVERING, within=20)
        await anyio.sleep(12)
        cable.plug_in()

        assert await heard(process) == (lines(500), 0)
