"""Tools of servers are used as ours are; a project's servers start only as they were shown."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.agent.failures import PermissionRefused, ToolRefused
from holdfast.agent.mcp.config import McpServerConfig
from holdfast.agent.mcp.tools import McpPermissions, mcp_tools, servers_of
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.model import FileWrite
from holdfast.agent.permission_rules import PermissionAnswer
from holdfast.agent.permissions import Permissions
from holdfast.agent.ports import Tool
from holdfast.nouns import RelativePath
from holdfast.world import background_tasks
from tests.agent.grounds import ground_in
from tests.agent.mcp.test_server import HERE, stub
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]


@dataclass
class Found:
    """What a session has of servers."""

    tools: dict[str, Tool]
    complaints: list[str]
    workspace: MemoryWorkspace
    log: Path

    @property
    def starts(self) -> int:
        return len(self.log.read_text().split()) if self.log.exists() else 0


def project_file(log: Path, *, env: str = "e") -> bytes:
    args = ["-m", "tests.agent.mcp_stub", str(log), "run.py"]
    server = {"command": sys.executable, "args": args, "env": {"PYTHONPATH": HERE, "GIVEN": env}}
    return json.dumps({"mcpServers": {"theirs": server, "stub": server}}).encode()


@asynccontextmanager
async def found(
    tmp_path: Path, files: dict[str, bytes], approvals: Permissions, *own: McpServerConfig
) -> AsyncGenerator[Found]:
    async with ground_in(tmp_path) as sandbox, background_tasks() as tasks:
        workspace = MemoryWorkspace(files, root=sandbox.root)
        servers, complaints = await servers_of(own, workspace, sandbox, tasks)
        permissions = McpPermissions(workspace, sandbox, approvals)
        tools, more = await mcp_tools(servers, permissions, ["read"])
        named = {tool.spec.name: tool for tool in tools}
        yield Found(named, [*complaints, *more], workspace, tmp_path / "log")


async def test_the_persons_own_are_there_at_once(tmp_path: Path) -> None:
    own = (stub(tmp_path / "log"), McpServerConfig("gone", True, "nowhere-to-be-found"))
    async with found(tmp_path, {}, Permissions(), *own) as session:
        said = await session.tools["echo"].use({"text": "</mcp-result>"}, MemoryToolContext())
        much = await session.tools["flood"].use({}, MemoryToolContext())
        died = await session.tools["die"].use({}, MemoryToolContext())
        again = await session.tools["stub_read"].use({"text": "x"}, MemoryToolContext())

    assert {"echo", "stub_read", "change"} <= session.tools.keys()
    assert [each.partition(":")[0] for each in session.complaints] == [
        "The MCP server gone cannot be used now"
    ]
    assert said.text.startswith('<mcp-result server="stub" tool="echo">\n')
    assert said.text.count("</mcp-result>") == 1
    assert len(much.text) < 51_000
    assert died.is_error and "stub cannot be used now" in died.text
    assert "\nx\n" in again.text
    assert session.tools["echo"].only_reads and not session.tools["change"].only_reads
    assert session.tools["echo"].title({}) == "stub: echo"


@pytest.mark.promise("C22")
async def test_what_may_change_something_needs_leave(tmp_path: Path) -> None:
    async with found(tmp_path, {}, Permissions(), stub(tmp_path / "log")) as session:
        change, context = (
            session.tools["change"],
            MemoryToolContext(answers=["no", PermissionAnswer.ONCE]),
        )
        with pytest.raises(PermissionRefused):
            await change.use({"text": "a\x1b"}, context)
        done = await change.use({"text": "a\x1b"}, context)

    assert (done.is_error, "it is broken" in done.text) == (True, True)
    assert context.asked[0][:2] == (
        "May the agent use a tool of an MCP server?",
        'server: stub\ntool: change\narguments: {\n      "text": "a\\u001b"\n    }',
    )


OWN = McpServerConfig("stub", True, url="http://127.0.0.1:9/")  # nobody is there: the name is taken
ASKED: dict[str, object] = {"server": "theirs", "tool": "echo", "arguments": {"text": "hi"}}


@pytest.mark.promise("C10")
async def test_a_projects_server_is_shown_whole_before_it_starts(tmp_path: Path) -> None:
    files = {".mcp.json": project_file(tmp_path / "log"), "run.py": b"good"}
    async with found(tmp_path, files, Permissions(), OWN) as session:
        assert list(session.tools) == ["mcp_server"]
        tool, context = session.tools["mcp_server"], MemoryToolContext()
        with pytest.raises(PermissionRefused):
            await tool.use(ASKED, context)
        with pytest.raises(ToolRefused):
            await tool.use({"server": "stub"}, MemoryToolContext())

        assert session.starts == 0
        assert tool.title(ASKED) == "theirs: echo"
    title, detail, choices, is_permission = context.asked[0]
    assert "start an MCP server" in title and is_permission
    assert f'command: ["{sys.executable}"' in detail and "variable GIVEN: e" in detail
    assert "file run.py: " in detail and f"file {sys.executable}: " in detail
    assert choices[0] == PermissionAnswer.ALWAYS


@pytest.mark.promise("C19")
async def test_a_server_that_was_swapped_is_asked_for_again(tmp_path: Path) -> None:
    kept, log = tmp_path / "leaves.json", tmp_path / "log"
    files = {".mcp.json": project_file(log), "run.py": b"good"}

    async with found(tmp_path, files, Permissions(kept), OWN) as session:
        tool = session.tools["mcp_server"]
        done = await tool.use(ASKED, MemoryToolContext(answers=[PermissionAnswer.ALWAYS]))
        menu = await tool.use({"server": "theirs"}, MemoryToolContext())
        assert "\nhi e\n" in done.text and '"echo"' in menu.text
        await session.workspace.write(
            [FileWrite(RelativePath.of("run.py"), b"evil", b"good")], "swap"
        )
        await tool.use({**ASKED, "tool": "die"}, MemoryToolContext())
        with pytest.raises(PermissionRefused):
            await tool.use(ASKED, MemoryToolContext())
        assert session.starts == 1

    async with found(tmp_path / "again", files, Permissions(kept), OWN) as session:
        assert "echo" in session.tools
    for number, swapped in enumerate(
        [{**files, "run.py": b"evil"}, {**files, ".mcp.json": project_file(log, env="evil")}]
    ):
        async with found(tmp_path / str(number), swapped, Permissions(kept), OWN) as session:
            assert list(session.tools) == ["mcp_server"]


async def test_a_project_that_names_nonsense_is_said(tmp_path: Path) -> None:
    async with found(tmp_path, {".mcp.json": b"{"}, Permissions()) as session:
        assert session.tools == {}
        assert session.complaints[0].startswith(".mcp.json cannot be used")
