"""A real MCP server that the real Codex uses in a turn outlives what it all runs on."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.render.stop import Sort
from tests.cli.conversations import in_conversation, lines
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.exec.server.talking import until
from tests.journeys.stage import linux_only
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.mcp_servers import mcp_server
from tests.parts.model_acts import Call, Say
from tests.parts.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]

SECONDS, STEPS = 6, 6
USE = Call(
    "trigger_long_running_operation",  # as Codex calls it
    {"duration": SECONDS, "steps": STEPS},
    "use",
    namespace="mcp__everything",
)
DONE = f"Long running operation completed. Duration: {SECONDS} seconds, Steps: {STEPS}."
CONFIG = """
[mcp_servers.everything]
command = "sh"
args = ["-c", {command}]
required = true
"""


def with_mcp_server(home: Path, heard: Path, url: str) -> dict[str, str]:
    """A home of Codex with the server in it, and all that the server hears written down."""
    found = codex_home(home / "c", url)
    command = f"tee -a {shlex.quote(str(heard))} | {shlex.join(mcp_server('server-everything'))}"
    with (home / "c" / "codex-home" / "config.toml").open("a") as config:
        config.write(CONFIG.format(command=json.dumps(command)))
    return {**found, "HOLDFAST_CODEX": str(codex_binary())}


def calls(heard: Path) -> int:
    """How often the server was asked to use a tool, so far."""
    said = heard.read_text().splitlines() if heard.exists() else []
    return sum('"tools/call"' in line for line in said)


async def kill_servers(bench: Bench, times: int) -> None:
    """Kill the exec-server, each time that there is a new one."""
    killed: set[int] = set()

    def there() -> set[int]:
        every = belongings(bench.settings.state)
        return {each.pid for each in every if each.sort is Sort.SERVER} - killed

    while len(killed) < times:
        await until(lambda: bool(there()), within=60)
        for pid in there():
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)


@pytest.mark.long
@pytest.mark.promise("X10", "X13")
async def test_a_tool_of_an_mcp_server_is_used_once_while_servers_die() -> None:
    async with ModelServer([[USE], [Say("Done.")]]) as model:
        with in_conversation() as bench:
            heard = bench.home / "heard"
            env = environment(bench.home, **with_mcp_server(bench.home, heard, model.url))
            words = [*COMMAND, "ask", "--json", "--runner", "codex", "--consent", "Go"]
            async with await anyio.open_process(
                words, cwd=bench.project, env=env, stdin=subprocess.DEVNULL
            ) as asked:
                await until(lambda: calls(heard) == 1, within=120)
                await kill_servers(bench, times=2)
                assert asked.stdout is not None
                printed = b"".join([chunk async for chunk in asked.stdout])
            result = lines(printed)[-1]
            count = calls(heard)
    outputs = model.requests[-1].tool_outputs

    assert (result["status"], result["text"]) == ("completed", "Done."), printed
    assert count == 1
    assert list(outputs) == ["use"]
    assert DONE in json.dumps(outputs["use"])
