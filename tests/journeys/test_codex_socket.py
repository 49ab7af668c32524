"""A Codex that outlives our connection: cut in the middle of a turn, and taken up again."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.codex import Approval, ApprovalDecision, AppServer, CommandApproval, Thread
from holdfast.codex.wire.generated import AgentMessageDeltaNotification, TurnCompletedNotification
from holdfast.rpc.failures import ConnectionLost, SocketRefused
from holdfast.rpc.transports.websocket import WebSocketTransport, connect_websocket, upgrade
from holdfast.rpc.transports.websocket_protocol import UnixAddress, read_address
from holdfast.rpc.transports.websocket_stream_loop import WebSocketLimits
from tests.journeys.stage import Stage, staged
from tests.parts.codex_binary import codex_binary
from tests.parts.model_acts import Gate, Reply, Say, run

pytestmark = [pytest.mark.anyio, pytest.mark.promise("F26")]

START_LONGEST = 60.0


@pytest.fixture(params=["ws", "unix"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the server is to listen."""
    if request.param == "unix":
        tmp_path.chmod(0o700)
        return f"unix://{tmp_path}/codex.sock"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"ws://127.0.0.1:{probe.getsockname()[1]}"


@asynccontextmanager
async def listening(place: Path, url: str, script: list[Reply]) -> AsyncIterator[Stage]:
    """A real app-server that listens, for as long as the block."""
    async with (
        staged(place, script) as stage,
        await anyio.open_process(
            [str(codex_binary()), "app-server", "--listen", url],
            cwd=place,
            env=stage.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        try:
            await answers(url)
            yield stage
        finally:
            process.kill()


async def answers(url: str) -> None:
    """Wait until the server listens."""
    with anyio.fail_after(START_LONGEST):
        while True:
            try:
                transport = await connect_websocket(url)
            except SocketRefused:
                await anyio.sleep(0.1)
            else:
                await transport.aclose()
                return


async def cuttable(url: str) -> tuple[WebSocketTransport, socket.socket]:
    """A connection with the server, and its socket."""
    address = read_address(url)
    if isinstance(address, UnixAddress):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.path)
    else:
        connection = socket.create_connection((address.host, address.port))
    made = await upgrade(connection, address, token=None, limits=WebSocketLimits())
    return made, connection


class Person:
    """Is asked, remembers it, and decides when they are told to."""

    def __init__(self, decision: ApprovalDecision | None) -> None:
        self._decision = decision
        self.asked: list[Approval] = []
        self.is_asked = anyio.Event()

    async def decide(self, approval: Approval) -> ApprovalDecision:
        self.asked.append(approval)
        self.is_asked.set()
        if self._decision is None:
            await anyio.sleep_forever()
        assert self._decision is not None
        return self._decision


async def run_until_lost(thread: Thread, begun: anyio.Event) -> None:
    """Follow a turn from its beginning until the connection ends."""
    with pytest.raises(ConnectionLost):
        async for event in thread.run("go"):
            if isinstance(event, AgentMessageDeltaNotification):
                begun.set()


async def test_the_rest_of_a_turn_arrives_on_a_new_connection(tmp_path: Path, url: str) -> None:
    gate, begun = anyio.Event(), anyio.Event()
    script: list[Reply] = [[Say("begun"), Gate(gate), Say("ended")]]
    async with listening(tmp_path, url, script):
        transport, connection = await cuttable(url)
        async with AppServer.connect(transport=transport) as server:
            thread = await server.start_thread(cwd=tmp_path)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_until_lost, thread, begun)
                await begun.wait()
                connection.shutdown(socket.SHUT_RDWR)
        async with AppServer.connect(transport=await connect_websocket(url)) as server:
            again = await server.resume_thread(thread.id)
            assert again.active_turn is not None
            gate.set()
            rest = [event async for event in again.follow()]
    said = [event.delta for event in rest if isinstance(event, AgentMessageDeltaNotification)]
    assert said == ["ended"]
    assert isinstance(rest[-1], TurnCompletedNotification)
    assert rest[-1].turn.status == "completed"


async def test_a_pending_approval_is_asked_again_and_answered_there(
    tmp_path: Path, url: str
) -> None:
    absent, present = Person(None), Person(ApprovalDecision.ACCEPT)
    async with listening(tmp_path, url, [[run("touch made.txt")], [Say("Done.")]]):
        transport, connection = await cuttable(url)
        async with AppServer.connect(transport=transport, approvals=absent.decide) as server:
            thread = await server.start_thread(cwd=tmp_path, approval_policy="untrusted")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_until_lost, thread, anyio.Event())
                await absent.is_asked.wait()
                connection.shutdown(socket.SHUT_RDWR)
        transport = await connect_websocket(url)
        async with AppServer.connect(transport=transport, approvals=present.decide) as server:
            again = await server.resume_thread(thread.id)
            assert again.active_turn is not None
            rest = [event async for event in again.follow()]
    assert isinstance(rest[-1], TurnCompletedNotification)
    assert rest[-1].turn.status == "completed"
    assert (tmp_path / "made.txt").exists()
    assert isinstance(absent.asked[0], CommandApproval)
    assert present.asked == absent.asked
