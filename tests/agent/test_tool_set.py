"""A session has its tools, and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.agent.failures import PermissionRefused
from holdfast.agent.memory import MemoryToolContext, MemoryWorkspace
from holdfast.agent.permission_rules import PermissionMode
from holdfast.agent.tool_set import SessionContext, ToolSettings, open_tool_set
from tests.agent.grounds import ground_in, needs_sandbox
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

FILES = {
    "AGENTS.md": b"Be kind.",
    ".agents/skills/one/SKILL.md": b"---\nname: one\ndescription: For one.\n---\nDo it.",
    ".agents/skills/two/SKILL.md": b"?",
}


@needs_sandbox()
async def test_the_tools_of_a_session(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox:
        workspace = MemoryWorkspace(FILES, root=sandbox.root)
        async with open_tool_set(
            sandbox, workspace, ToolSettings(asking=PermissionMode.NEVER)
        ) as box:
            names = ["read", "search", "edit", "write", "apply_patch", "shell", "ask", "skill"]
            assert list(box.tools) == names
            assert box.known.notes == (("AGENTS.md", "Be kind."),)
            assert box.known.skills == (("one", "For one."),)
            assert [each.partition(":")[0] for each in box.known.complaints] == [
                ".agents/skills/two/SKILL.md"
            ]

            shell = box.tools["shell"]
            left = await shell.use({"command": "sleep 300", "seconds": 1}, MemoryToolContext())
            await box.clear()
            after = await shell.use({"action": "wait", "id": "sh1"}, MemoryToolContext())
            with pytest.raises(PermissionRefused):
                await shell.use({"command": "x", "reach": "open"}, MemoryToolContext())

        assert left.text.startswith("still running")
        assert after.text.startswith("the turn was stopped")
        assert os.listdir(sandbox.scratch) == []


@needs_sandbox()
async def test_no_skills_no_tool_for_them(tmp_path: Path) -> None:
    async with ground_in(tmp_path) as sandbox:
        workspace = MemoryWorkspace({}, root=sandbox.root)
        async with open_tool_set(sandbox, workspace, ToolSettings()) as box:
            assert "skill" not in box.tools
            assert box.known == SessionContext(
                notes=(), skills=(), complaints=(), confinement=box.known.confinement
            )
            assert "ask" in box.tools and "ask" not in box.without_person
