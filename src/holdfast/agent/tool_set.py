"""The tools of a session, put together; whatever they started ends with it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.agent.mcp.config import Server
from holdfast.agent.mcp.tools import Leaves, mcp_tools, servers_of
from holdfast.agent.permission_rules import Asking
from holdfast.agent.permissions import Approvals
from holdfast.agent.ports import Tool, Workspace
from holdfast.agent.prompt import find_notes
from holdfast.agent.sandbox import Confinement, Ground
from holdfast.agent.tools.ask import Ask
from holdfast.agent.tools.edit import Edit
from holdfast.agent.tools.patch import ApplyPatch
from holdfast.agent.tools.read import Read
from holdfast.agent.tools.search import Engine, Search
from holdfast.agent.tools.shell import Shell, Shells, shells_in
from holdfast.agent.tools.skills import UseSkill, find_skills
from holdfast.agent.tools.write import Write
from holdfast.nouns import RelativePath
from holdfast.world import companions


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the person has settled about tools.

    `leaves` is the file that lasting leaves are kept in, `skills` are directories of their own
    skills, `servers` are their own MCP servers, and `inside` is where in the project they stand.
    """

    asking: Asking = Asking.ASK
    leaves: Path | None = None
    skills: tuple[Path, ...] = ()
    inside: RelativePath | None = None
    servers: tuple[Server, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was found for a session beside its tools; all of it is data of others.

    `notes` are by their paths, the nearest last; `skills` are names, and what each is for;
    `complaints` say to the person what cannot be used; `confinement` is that of commands.
    """

    notes: tuple[tuple[str, str], ...]
    skills: tuple[tuple[str, str], ...]
    complaints: tuple[str, ...]
    confinement: Confinement


class Toolbox:
    """All tools of a session by their names, and what a model is told beside them.

    `without_person` are those that an agent has who cannot ask anybody.
    """

    def __init__(self, tools: Sequence[Tool], shells: Shells, known: Known) -> None:
        self.tools: Mapping[str, Tool] = {tool.spec.name: tool for tool in tools}
        alone = [tool for tool in tools if not isinstance(tool, Ask)]
        self.without_person: Mapping[str, Tool] = {tool.spec.name: tool for tool in alone}
        self.known = known
        self._shells = shells

    async def clear(self) -> None:
        """End everything that a tool has left running."""
        await self._shells.end_all("the turn was stopped")


@asynccontextmanager
async def toolbox(
    ground: Ground, workspace: Workspace, settings: ToolSettings
) -> AsyncGenerator[Toolbox]:
    """The tools of a session; nothing that they started is left at the end of the block."""
    approvals = Approvals(settings.leaves, asking=settings.asking)
    scratch = tempfile.mkdtemp(dir=ground.scratch, prefix="holdfast-")
    ground = replace(ground, scratch=scratch)
    try:
        async with shells_in(ground) as shells, companions() as tasks:
            skills = await find_skills(workspace, settings.skills)
            tools: list[Tool] = [
                Read(workspace),
                Search(workspace, ground, Engine.on(ground)),
                Edit(workspace, approvals),
                Write(workspace, approvals),
                ApplyPatch(workspace, approvals),
                Shell(shells, approvals),
                Ask(),
            ]
            if skills.skills:
                tools.append(UseSkill(workspace, skills))
            servers, wrong = await servers_of(settings.servers, workspace, ground, tasks)
            leaves = Leaves(workspace, ground, approvals)
            theirs, unusable = await mcp_tools(servers, leaves, [each.spec.name for each in tools])
            confinement = await ground.confinement()
            weak = filter(None, [confinement.for_person()])
            known = Known(
                notes=await find_notes(workspace, settings.inside),
                skills=tuple(skills.menu),
                complaints=(*weak, *skills.complaints, *wrong, *unusable),
                confinement=confinement,
            )
            yield Toolbox([*tools, *theirs], shells, known)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
