"""Real MCP servers run over the plane, and whoever speaks with them notices no fault of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.abc import TaskStatus

from holdfast.exec import Client, ProcessTransport, RecoveryPolicy
from holdfast.exec.model import ClientState, Command
from holdfast.rpc import Connection, ConnectionConfig, Subscription, connect_websocket
from holdfast.rpc.model import Dialect
from tests.exec.server.talking import PATH, Served, end_keeper, served
from tests.journeys.stage import linux_only
from tests.parts.chaos_proxy import ChaosProxy, chaos_proxy
from tests.parts.mcp_servers import mcp_server

pytestmark = [pytest.mark.anyio, linux_only]

Json = dict[str, Any]  # Any: JSON, as the protocol defines it

POLICY = RecoveryPolicy(window=20.0, wait_first=0.05, wait_longest=0.5, settled=0.05)
TERMS = ConnectionConfig(dialect=Dialect(jsonrpc=True))
PATIENCE = 60.0
PROGRESS = "notifications/progress"
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "holdfast", "version": "1"},
}


@dataclass
class Mcp:
    """The least of an MCP client: it knows a conversation, and nothing of what carries it."""

    connection: Connection
    news: Subscription

    async def ask(self, method: str, params: Json) -> Json:
        return await self.connection.request(method, params, timeout=PATIENCE, result=Json)

    async def call(self, tool: str, *, token: str | None = None, **arguments: object) -> str:
        """Use a tool, and return the text that it answers with."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        params = {"name": tool, "arguments": arguments, **meta}
        answer = await self.ask("tools/call", params)
        assert not answer.get("isError"), answer
        return "".join(part["text"] for part in answer["content"])

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("tools/list", {}))["tools"]]

    async def next_progress(self) -> list[int]:
        """Wait for the next news of a tool that takes long: how far it has come."""
        while True:
            told = [note for note in await self.news.receive() if note.method == PROGRESS]
            if told:
                return [msgspec.json.decode(note.params, type=Json)["progress"] for note in told]


@dataclass
class Plane:
    """A client of an exec-server behind a proxy that can do harm, and a server that can die."""

    client: Client
    proxy: ChaosProxy
    servers: list[Served]
    revive: Callable[[], Awaitable[None]] = field(repr=False)

    async def cut(self) -> None:
        await self.proxy.cut()

    async def half_open(self) -> None:
        await self.proxy.half_open()

    async def kill_server(self) -> None:
        await self.servers[-1].kill()
        await self.revive()


@asynccontextmanager
async def plane(state: Path) -> AsyncGenerator[Plane]:
    """All of it; whatever is left at the end is ended, also when the block fails."""
    try:
        async with _plane(state) as stage:
            yield stage
    finally:
        with anyio.CancelScope(shield=True):
            await end_keeper(state)


@asynccontextmanager
async def _plane(state: Path) -> AsyncGenerator[Plane]:
    servers: list[Served] = []
    async with chaos_proxy(0) as (proxy, url), anyio.create_task_group() as tasks:

        async def serve(*, task_status: TaskStatus[None]) -> None:
            name = url.removeprefix("ws://")
            async with served(state, "--name", name, leave=True) as server:
                servers.append(server)
                proxy.port = int(server.url.rpartition(":")[2])
                task_status.started()
                await anyio.sleep_forever()

        async def revive() -> None:
            await tasks.start(serve)

        await revive()
        async with Client(lambda: connect_websocket(url), policy=POLICY) as client:
            yield Plane(client, proxy, servers, revive)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def speaking(client: Client, *argv: str) -> AsyncGenerator[Mcp]:
    """Start an MCP server on the plane and shake hands with it."""
    process = await client.start(Command(argv, cwd="/", env=PATH, has_stdin=True))
    async with Connection(ProcessTransport(process), TERMS) as connection:
        with connection.subscribe() as news:
            mcp = Mcp(connection, news)
            answer = await mcp.ask("initialize", HELLO)
            assert "tools" in answer["capabilities"]
            await connection.notify("notifications/initialized")
            yield mcp
            assert connection.failure is None


async def harmed_in_the_middle_of_a_call(
    mcp: Mcp, harm: Callable[[], Awaitable[None]], *, seconds: int = 2
) -> None:
    """Use a tool that takes its time, do harm between its steps, and compare all it says."""
    answers: list[str] = []

    async def use() -> None:
        tool = "trigger-long-running-operation"
        answers.append(await mcp.call(tool, token="t", duration=seconds, steps=8))

    progress: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        while progress[-1:] != [8]:
            progress += await mcp.next_progress()
            if progress[-1] % 2:
                await harm()

    assert progress == [1, 2, 3, 4, 5, 6, 7, 8]
    done = f"Long running operation completed. Duration: {seconds} seconds, Steps: 8."
    assert answers == [done]


@pytest.mark.promise("X10")
@pytest.mark.parametrize("harm", [Plane.cut, Plane.half_open], ids=["cut", "half-open"])
async def test_a_tool_that_takes_long_is_not_disturbed_by_lost_connections(
    tmp_path: Path, harm: Callable[[Plane], Awaitable[None]]
) -> None:
    argv = mcp_server("server-everything")
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as mcp:
        assert {"echo", "trigger-long-running-operation"} <= set(await mcp.tools())
        await harmed_in_the_middle_of_a_call(mcp, lambda: harm(stage))

        assert await mcp.call("echo", message="still here") == "Echo: still here"
        assert stage.proxy.dials > 3


@pytest.mark.long
@pytest.mark.promise("X10", "X13")
async def test_a_tool_that_takes_long_is_not_disturbed_by_servers_that_die(tmp_path: Path) -> None:
    argv = mcp_server("server-everything")
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as mcp:
        await harmed_in_the_middle_of_a_call(mcp, stage.kill_server, seconds=8)

        assert await mcp.call("echo", message="still here") == "Echo: still here"
        assert len(stage.servers) >= 3


@pytest.mark.long
@pytest.mark.promise("X10")
async def test_many_calls_at_once_through_cuts_are_answered_each_with_its_own(
    tmp_path: Path,
) -> None:
    argv = mcp_server("server-everything")
    answers: dict[int, str] = {}
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as mcp:

        async def echo(number: int) -> None:
            answers[number] = await mcp.call("echo", message=f"{number}:" + "x" * 5000)

        for batch in range(5):
            async with anyio.create_task_group() as tasks:
                for number in range(batch * 20, batch * 20 + 20):
                    tasks.start_soon(echo, number)
                stage.proxy.cut_after["up"] = 20_000 + 7 * batch
                stage.proxy.cut_after["down"] = 30_000 + 11 * batch

        assert stage.client.state is not ClientState.FAILED
        assert stage.proxy.dials > 3
    assert answers == {number: f"Echo: {number}:" + "x" * 5000 for number in range(100)}


@pytest.mark.long
@pytest.mark.promise("X10", "X13")
async def test_files_are_written_once_and_read_whole_through_cuts_and_deaths(
    tmp_path: Path,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    argv = (*mcp_server("server-filesystem"), str(files))
    text = "".join(f"line {number}\n" for number in range(20_000))
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as mcp:
        for harm in (stage.cut, stage.kill_server, stage.half_open):
            path = str(files / harm.__name__)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harm)
                await mcp.call("write_file", path=path, content=text)
            assert (files / harm.__name__).read_text() == text
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harm)
                assert await mcp.call("read_text_file", path=path) == text
