"""Whatever a server does, whoever uses it gets an answer or an error, and nothing of it is left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import McpUnavailable
from holdfast.agent.mcp.config import McpServerConfig
from holdfast.agent.mcp.server import STARTS_MAX, McpServer, program_of
from holdfast.agent.sandbox import SandboxConfig, SandboxLevel
from holdfast.agent.tools.shell import open_shell_commands
from holdfast.world import background_tasks
from tests.agent.grounds import ground_in, soon
from tests.journeys.stage import linux_only
from tests.parts.mcp_servers import mcp_server
from tests.world.test_processes_process_marks import is_alive

pytestmark = [pytest.mark.anyio, linux_only]

HERE = os.path.abspath(".")


def stub(log: Path, **more: str) -> McpServerConfig:
    """Our own server, which writes down every time that it is started."""
    args = ("-m", "tests.agent.mcp_stub", str(log))
    return McpServerConfig("stub", True, sys.executable, args, {"PYTHONPATH": HERE, **more})


async def let() -> None:
    """Nothing is in the way."""


@asynccontextmanager
async def kept(
    tmp_path: Path, server: McpServerConfig, **longest: float
) -> AsyncGenerator[McpServer]:
    async with ground_in(tmp_path) as sandbox, background_tasks() as tasks:
        yield McpServer(server, sandbox, tasks, **longest)


async def test_its_tools_are_used(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with kept(tmp_path, stub(log, GIVEN="too")) as server:
        offered = await server.offered(let)
        said = await server.call("echo", {"text": "hello"}, let)
        failed = await server.call("change", {}, let)
        (pid,) = map(int, log.read_text().split())

    assert [(each.name, each.only_reads) for each in offered][:3] == [
        ("echo", True),
        ("read", True),
        ("change", False),
    ]
    assert said == ("hello too", False)
    assert failed == ("it is broken", True)
    await soon(lambda: not is_alive(pid))


async def test_one_that_dies_is_an_error_and_started_again_but_not_for_ever(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with kept(tmp_path, stub(log)) as server:
        for _ in range(STARTS_MAX):
            with pytest.raises(McpUnavailable), anyio.fail_after(60):
                await server.call("die", {}, let)
        with pytest.raises(McpUnavailable, match="started 4 times"):
            await server.call("echo", {}, let)

    assert len(log.read_text().split()) == STARTS_MAX


async def test_one_that_hangs_is_an_error_and_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with kept(tmp_path, stub(log), call_longest=4.0) as server:
        await server.offered(let)
        with pytest.raises(McpUnavailable, match="did not answer within 4"):
            await server.call("hang", {}, let)
        said = await server.call("echo", {"text": "again"}, let)
        pids = [int(pid) for pid in log.read_text().split()]

        assert said == ("again", False)
        await soon(lambda: not is_alive(pids[0]))
        assert is_alive(pids[1])


@pytest.mark.promise("A11")
async def test_what_it_has_started_ends_with_it(tmp_path: Path) -> None:
    async with kept(tmp_path, stub(tmp_path / "log")) as server:
        said, _ = await server.call("fork", {}, let)
        assert is_alive(int(said))

    await soon(lambda: not is_alive(int(said)))


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [("nowhere-to-be-found", (), "no such file"), ("/bin/sh", ("-c", "exit 3"), "exit status 3")],
)
async def test_one_that_does_not_start_is_an_error(
    tmp_path: Path, command: str, args: tuple[str, ...], reason: str
) -> None:
    async with kept(tmp_path, McpServerConfig("x", True, command, args)) as server:
        with pytest.raises(McpUnavailable, match=reason), anyio.fail_after(60):
            await server.offered(let)


async def test_one_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    server = McpServerConfig("x", True, "/bin/sleep", ("300",))
    async with kept(tmp_path, server, start_longest=0.5) as silent:
        with pytest.raises(McpUnavailable, match="did not start in time"), anyio.fail_after(60):
            await silent.offered(let)


async def test_without_leave_nothing_is_started(tmp_path: Path) -> None:
    class Forbidden(Exception):
        pass

    async def forbid() -> None:
        raise Forbidden

    async with kept(tmp_path, stub(tmp_path / "log")) as server:
        with pytest.raises(Forbidden):
            await server.call("echo", {}, forbid)
    assert not (tmp_path / "log").exists()


def test_a_program_is_found_as_its_variables_say(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    sandbox = SandboxConfig(processes=None, root="/", environment={"PATH": "/bin"}, scratch="/")  # type: ignore[arg-type]  # nothing is started

    assert program_of(McpServerConfig("x", True, "tool"), sandbox) is None
    own = McpServerConfig("x", True, "tool", env={"PATH": str(tmp_path)})
    assert program_of(own, sandbox) == str(tmp_path / "tool")


@pytest.mark.timeout(100)
async def test_a_real_server_over_the_plane(tmp_path: Path) -> None:
    node, script = mcp_server("server-everything")
    async with kept(tmp_path, McpServerConfig("everything", True, node, (script,))) as server:
        names = {each.name for each in await server.offered(let)}
        said = await server.call("echo", {"message": "hello"}, let)

    assert {"echo", "get-sum"} <= names
    assert said == ("Echo: hello", False)


@pytest.mark.timeout(100)
async def test_a_real_server_at_an_address(tmp_path: Path) -> None:
    node, script = mcp_server("server-everything")
    async with (
        ground_in(tmp_path) as sandbox,
        background_tasks() as tasks,
        open_shell_commands(sandbox) as shells,
    ):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        line = f"PORT={port} exec {node} {script} streamableHttp"
        running = await shells.start(line, SandboxLevel.OPEN, has_stdin=False)
        while "listening" not in running.window.take():
            assert not running.is_over
            await running.wait(1.0)
        there = McpServerConfig("there", True, url=f"http://127.0.0.1:{port}/mcp")
        server = McpServer(there, sandbox, tasks)
        names = {each.name for each in await server.offered(let)}
        said = await server.call("echo", {"message": "hello"}, let)
        await running.end("enough")
        with pytest.raises(McpUnavailable), anyio.fail_after(60):
            await server.call("echo", {"message": "gone"}, let)

    assert "echo" in names
    assert said == ("Echo: hello", False)


def test_only_who_starts_a_server_needs_the_sdk() -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "import anyio\n"
        "from holdfast.agent.tool_set import open_tool_set\n"
        "from holdfast.agent.mcp.server import McpServer, McpServerConfig\n"
        "from holdfast.failures import Failure\n"
        "try: anyio.run(McpServer(McpServerConfig('x', True, 'true'), None, None).offered, None)\n"
        "except Failure as failure: print(failure.code)\n"
    )
    env = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)

    assert (done.stdout, done.stderr) == ("EXEC_EXTRA_MISSING\n", "")
