"""A model's commands are shut in, go on when they take long, and end when they must."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.agent.failures import PermissionRefused, ToolRefused
from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.model import ToolResult
from holdfast.agent.permission_rules import PermissionAnswer
from holdfast.agent.permissions import Permissions
from holdfast.agent.sandbox import SandboxConfig
from holdfast.agent.tools.shell import ShellCommands, ShellTool, open_shell_commands
from tests.agent.grounds import ground_in, needs_sandbox, soon
from tests.journeys.stage import linux_only
from tests.world.test_processes_process_marks import is_alive

pytestmark = [pytest.mark.anyio, linux_only, needs_sandbox()]


@asynccontextmanager
async def shelled(tmp_path: Path) -> AsyncGenerator[tuple[ShellTool, SandboxConfig, ShellCommands]]:
    async with ground_in(tmp_path) as sandbox, open_shell_commands(sandbox) as shells:
        yield ShellTool(shells, Permissions(), quiet_longest=0.2), sandbox, shells


async def run(
    tool: ShellTool, context: MemoryToolContext | None = None, /, **arguments: object
) -> ToolResult:
    return await tool.use(dict(arguments), context or MemoryToolContext())


@pytest.mark.promise("C22")
async def test_a_command_changes_the_project_and_reaches_nothing_else(tmp_path: Path) -> None:
    async with shelled(tmp_path) as (tool, sandbox, _):
        outside = Path(sandbox.root).parent / "outside"
        outside.write_text("as it was")
        context = MemoryToolContext()

        done = await run(
            tool,
            context,
            command=(
                f"echo in > inside; echo x > {outside}; cat {outside}; echo y > .envrc; "
                'mkdir -p .git/hooks; echo t > "$TMPDIR/kept"; wc -l < /proc/net/route; env'
            ),
        )
        later = await run(tool, command='cat "$TMPDIR/kept" inside; exit 3')

        assert "secret-canary" not in done.text
        assert "as it was" not in done.text
        assert "\n1\n" in done.text  # no route leads anywhere
        assert done.status == 0
        assert "".join(context.shown).startswith(done.text.partition("\n")[2][:20])
        assert later.text == "exit status 3\nt\nin\n"
        assert later.status == 3
        assert outside.read_text() == "as it was"
        await soon(lambda: os.listdir(sandbox.root) == ["inside"])  # no stand-ins are left


async def test_one_that_takes_long_goes_on(tmp_path: Path) -> None:
    async with shelled(tmp_path) as (tool, _, shells):
        context = MemoryToolContext()
        line = "read a; echo got $a; read b; echo and $b; sleep 300"

        begun = await run(tool, context, command=line, seconds=1, keeps_input=True)
        told = [await run(tool, action="input", id="sh1", input="1\n", seconds=1)]
        while "got 1" not in told[-1].text:
            told.append(await run(tool, action="wait", id="sh1", seconds=1))
        told.append(await run(tool, action="input", id="sh1", input="2\n", seconds=1))
        while "and 2" not in told[-1].text:
            told.append(await run(tool, action="wait", id="sh1", seconds=1))
        killed = await run(tool, action="kill", id="sh1")

        assert begun.text.startswith("still running after 1 s")
        assert "id sh1" in begun.text and begun.status is None
        assert any("no output for 0.2 seconds" in each for each in context.shown)
        assert sum("got 1" in each.text for each in told) == 1  # what is new, and no more
        assert killed.text.startswith("killed\n") and killed.status == 137
        assert shells.living == []
        with pytest.raises(ToolRefused, match="has ended"):
            await run(tool, action="input", id="sh1", input="x")
        recalled = await run(tool, action="recall", id="sh1", offset=4)
        assert recalled.text == "1\nand 2\n"


@pytest.mark.promise("A11")
async def test_cancelled_nothing_is_left(tmp_path: Path) -> None:
    async with shelled(tmp_path) as (tool, _, shells):
        context = MemoryToolContext(answers=[PermissionAnswer.ONCE])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: run(tool, context, command="echo $$; sleep 300", seconds=60, reach="open")
            )
            await soon(lambda: "\n" in "".join(context.shown))
            tasks.cancel_scope.cancel()

        (pid,) = (int(line) for line in "".join(context.shown).split("\n") if line.isdigit())
        await soon(lambda: not is_alive(pid))
        assert shells.living == []


@pytest.mark.promise("C22")
@pytest.mark.parametrize("reach", ["network", "open"])
async def test_to_reach_further_it_needs_leave_for_exactly_that(tmp_path: Path, reach: str) -> None:
    async with shelled(tmp_path) as (tool, sandbox, shells):
        outside = Path(sandbox.root).parent / "outside"
        line = f"echo x > {outside}; echo $(echo hi)"
        context = MemoryToolContext(answers=["no", PermissionAnswer.SESSION])
        why = "because\nMay the agent rest?\x1b[2J"

        with pytest.raises(PermissionRefused):
            await run(tool, context, command=line, reach=reach, why=why)
        assert shells.living == [] and not outside.exists()
        await run(tool, context, command=line, reach=reach, why=why)
        done = await run(tool, context, command=line, reach=reach, why="for another reason")
        with pytest.raises(PermissionRefused):
            await run(tool, context, command=f"{line} ", reach=reach, why=why)

        assert done.text.endswith("hi\n")
        assert outside.exists() is (reach == "open")
        assert [each[1] for each in context.asked[:2]] == [
            f"command: {line}\nthe agent says why: because\n    May the agent rest?<U+001B>[2J"
        ] * 2
        assert len(context.asked) == 3


@pytest.mark.promise("C21")
@pytest.mark.parametrize("size", [5_000_000, pytest.param(10**9, marks=pytest.mark.long)])
async def test_a_flood_takes_little_memory(tmp_path: Path, size: int) -> None:
    command = [sys.executable, "-m", "tests.agent.flooding", str(tmp_path), str(size)]
    done = await anyio.run_process(command, env={**os.environ, "PYTHONPATH": "src"})
    told = json.loads(done.stdout)

    assert (told["said"], told["status"], told["end"]) == (size + 9, 0, "the end\n")
    assert told["held"] < 51_000 and told["shown"] < 65_000
    assert told["rss_mb"] <= 200


async def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"command": " "}, "say which command"),
        ({"command": "a\0b"}, "NUL"),
        ({"action": "wait", "id": "sh9"}, "no process 'sh9'"),
        ({"command": "x", "seconds": 301}, "do not fit"),
    ]
    async with shelled(tmp_path) as (tool, _, _):
        for arguments, reason in wrong:
            with pytest.raises(ToolRefused, match=reason):
                await run(tool, **arguments)

        assert tool.spec.name == "shell"
        assert tool.title({"command": "make\n  test\x1b"}) == "make test<U+001B>"
        assert tool.title({"command": "x" * 200}) == "x" * 119 + "…"
        assert tool.title({"action": "kill", "id": "sh1"}) == "Kill sh1"
