"""The tools of a session: build them, and clean up what they started."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.agent.mcp.config import McpServerConfig
from holdfast.agent.mcp.tools import McpPermissions, mcp_tools, servers_of
from holdfast.agent.permission_rules import PermissionMode
from holdfast.agent.permissions import Permissions
from holdfast.agent.ports import Tool, Workspace
from holdfast.agent.prompt import find_notes
from holdfast.agent.sandbox import SandboxConfig, SandboxStrength
from holdfast.agent.tools.ask import AskTool
from holdfast.agent.tools.edit import EditTool
from holdfast.agent.tools.patch import PatchTool
from holdfast.agent.tools.read import ReadTool
from holdfast.agent.tools.search import SearchEngine, SearchTool
from holdfast.agent.tools.shell import ShellCommands, ShellTool, open_shell_commands
from holdfast.agent.tools.skills import SkillTool, find_skills
from holdfast.agent.tools.write import WriteTool
from holdfast.nouns import RelativePath
from holdfast.world import background_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Settings of the person about tools.

    `permissions` is the file of lasting permissions, `skills` are directories of skills, `servers`
    are MCP servers, and `inside` is the directory in the project that the session was started in.
    """

    asking: PermissionMode = PermissionMode.ASK
    permissions: Path | None = None
    skills: tuple[Path, ...] = ()
    inside: RelativePath | None = None
    servers: tuple[McpServerConfig, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """Untrusted data of a session for its system prompt.

    `notes` are (path, text), the nearest directory last. `skills` are (name, description).
    `complaints` are warnings for the person. `confinement` is the sandbox strength of commands.
    """

    notes: tuple[tuple[str, str], ...]
    skills: tuple[tuple[str, str], ...]
    complaints: tuple[str, ...]
    confinement: SandboxStrength


class ToolSet:
    """The tools of a session by name, and the data for its system prompt.

    `without_person` excludes tools that ask the person, for sub-agents.
    """

    def __init__(self, tools: Sequence[Tool], shells: ShellCommands, known: SessionContext) -> None:
        self.tools: Mapping[str, Tool] = {tool.spec.name: tool for tool in tools}
        alone = [tool for tool in tools if not isinstance(tool, AskTool)]
        self.without_person: Mapping[str, Tool] = {tool.spec.name: tool for tool in alone}
        self.known = known
        self._shells = shells

    async def clear(self) -> None:
        """End all processes that tools left running."""
        await self._shells.end_all("the turn was stopped")


@asynccontextmanager
async def open_tool_set(
    sandbox: SandboxConfig, workspace: Workspace, settings: ToolSettings
) -> AsyncGenerator[ToolSet]:
    """Build the tools of a session; leaving the context ends everything they started."""
    approvals = Permissions(settings.permissions, asking=settings.asking)
    scratch = tempfile.mkdtemp(dir=sandbox.scratch, prefix="holdfast-")
    sandbox = replace(sandbox, scratch=scratch)
    try:
        async with open_shell_commands(sandbox) as shells, background_tasks() as tasks:
            skills = await find_skills(workspace, settings.skills)
            tools: list[Tool] = [
                ReadTool(workspace),
                SearchTool(workspace, sandbox, SearchEngine.on(sandbox)),
                EditTool(workspace, approvals),
                WriteTool(workspace, approvals),
                PatchTool(workspace, approvals),
                ShellTool(shells, approvals),
                AskTool(),
            ]
            if skills.skills:
                tools.append(SkillTool(workspace, skills))
            servers, wrong = await servers_of(settings.servers, workspace, sandbox, tasks)
            permissions = McpPermissions(workspace, sandbox, approvals)
            theirs, unusable = await mcp_tools(
                servers, permissions, [each.spec.name for each in tools]
            )
            confinement = await sandbox.confinement()
            weak = filter(None, [confinement.for_person()])
            known = SessionContext(
                notes=await find_notes(workspace, settings.inside),
                skills=tuple(skills.menu),
                complaints=(*weak, *skills.complaints, *wrong, *unusable),
                confinement=confinement,
            )
            yield ToolSet([*tools, *theirs], shells, known)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
