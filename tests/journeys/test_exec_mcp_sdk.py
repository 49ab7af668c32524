"""The official MCP SDK speaks with real servers over the plane, and notices no fault of it."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession
from mcp.types import CallToolResult, TextContent

from holdfast.exec import Client, mcp_streams
from holdfast.exec.keeper.discovery import has_keeper
from holdfast.exec.model import ClientState, Command
from holdfast.rpc import connect_websocket
from tests.exec.server.talking import PATH, is_alive, served
from tests.journeys.stage import linux_only
from tests.journeys.test_exec_codex_server import exec_server
from tests.journeys.test_exec_mcp import POLICY, Plane, plane
from tests.parts.chaos_proxy import ChaosProxy, chaos_proxy
from tests.parts.mcp_servers import mcp_server

pytestmark = [pytest.mark.anyio, linux_only]

ROOT = Path(__file__).parents[2]
LONG = "trigger-long-running-operation"
ODD = "line \u2028 \x7f \U0001f9f7 \\n \u0085 \r\n"
Harm = Callable[[], Awaitable[None]]


@asynccontextmanager
async def speaking(client: Client, *argv: str) -> AsyncGenerator[ClientSession]:
    """A session with an MCP server that is started for it, and that has no complaint."""
    complaints: list[object] = []

    async def take(message: object) -> None:
        if isinstance(message, Exception):
            complaints.append(message)

    process = await client.start(Command(argv, cwd="/", env=PATH, has_stdin=True))
    async with mcp_streams(process) as streams:
        async with ClientSession(*streams, message_handler=take) as session:
            await session.initialize()
            yield session
            assert complaints == []


def text(result: CallToolResult) -> str:
    """All that a tool answers with."""
    assert not result.is_error, result
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


async def harmed_in_the_middle_of_a_call(session: ClientSession, harm: Harm, *, every: int) -> None:
    """Use a tool that takes its time, do harm between its steps, and compare all it says."""
    steps: list[float] = []

    async def step(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)
        if done % every == 1:
            await harm()

    arguments = {"duration": 1, "steps": 8}
    result = await session.call_tool(LONG, arguments, progress_callback=step)

    assert steps == [1, 2, 3, 4, 5, 6, 7, 8]
    assert text(result) == "Long running operation completed. Duration: 1 seconds, Steps: 8."


@pytest.mark.promise("X10", "X13")
@pytest.mark.parametrize(
    ("harm", "every"),
    [
        pytest.param(Plane.cut, 2, id="cut"),
        pytest.param(Plane.kill_server, 8, id="kill"),
        pytest.param(Plane.half_open, 2, id="half-open", marks=pytest.mark.long),
    ],
)
async def test_the_sdk_notices_no_fault_of_the_plane(
    tmp_path: Path, harm: Callable[[Plane], Awaitable[None]], every: int
) -> None:
    argv = mcp_server("server-everything")
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as session:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert {"echo", LONG} <= names
        await harmed_in_the_middle_of_a_call(session, lambda: harm(stage), every=every)

        assert text(await session.call_tool("echo", {"message": ODD})) == f"Echo: {ODD}"
        assert stage.proxy.dials >= 2


@asynccontextmanager
async def on_codex(place: Path) -> AsyncGenerator[tuple[Client, ChaosProxy]]:
    """A client of the real exec-server of Codex, behind a proxy that can do harm."""
    with exec_server(place) as port:
        async with chaos_proxy(port) as (proxy, url):
            async with Client(lambda: connect_websocket(url), policy=POLICY) as client:
                yield client, proxy


@pytest.mark.promise("X10")
async def test_the_sdk_notices_no_cut_on_the_server_of_codex_either(tmp_path: Path) -> None:
    argv = mcp_server("server-everything")
    async with on_codex(tmp_path) as (client, proxy), speaking(client, *argv) as session:
        await harmed_in_the_middle_of_a_call(session, proxy.cut, every=2)

        assert text(await session.call_tool("echo", {"message": ODD})) == f"Echo: {ODD}"
        assert proxy.dials > 3


@pytest.mark.promise("X10")
async def test_many_calls_at_once_through_cuts_at_any_byte_get_each_its_own_answer(
    tmp_path: Path,
) -> None:
    argv = mcp_server("server-everything")
    answers: dict[int, str] = {}
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as session:

        async def echo(number: int) -> None:
            message = {"message": f"{number}:" + "x" * 5000}
            answers[number] = text(await session.call_tool("echo", message))

        for batch in range(3):
            stage.proxy.cut_after = {"up": 20_000 + 7 * batch, "down": 30_000 + 11 * batch}
            async with anyio.create_task_group() as tasks:
                for number in range(batch * 20, batch * 20 + 20):
                    tasks.start_soon(echo, number)

        assert stage.client.state is not ClientState.FAILED
        assert stage.proxy.dials > 3
    assert answers == {number: f"Echo: {number}:" + "x" * 5000 for number in range(60)}


@pytest.mark.promise("X10")
async def test_files_are_written_once_and_read_whole_through_cuts(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    argv = (*mcp_server("server-filesystem"), str(files))
    content = "".join(f"{number} {ODD.strip()}\n" for number in range(20_000))
    async with plane(tmp_path / "state") as stage, speaking(stage.client, *argv) as session:
        for harm in (stage.cut, stage.half_open):
            path = files / harm.__name__
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harm)
                await session.call_tool("write_file", {"path": str(path), "content": content})
            assert path.read_bytes() == content.encode()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harm)
                read = await session.call_tool("read_text_file", {"path": str(path)})
            assert text(read) == content


async def test_the_program_of_the_how_to_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "run-mcp-servers.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    async with served(tmp_path / "state") as server:
        argv = [sys.executable, "-c", program, server.url, "", *mcp_server("server-everything")]
        done = await anyio.run_process(argv)

    assert done.stdout.decode() == "Echo: hello\n"


async def test_a_test_that_fails_leaves_no_keeper(tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(ExceptionGroup):
        async with plane(tmp_path / "state") as stage:
            await stage.client.start(Command(("sleep", "60"), cwd="/", env=PATH))
            pids += [each.pid for each in await stage.client.processes()]
            raise AssertionError("planted")

    assert [is_alive(pid) for pid in pids] == [False]
    assert not has_keeper(tmp_path / "state")
