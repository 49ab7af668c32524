"""The tools of a session, put together; whatever they started ends with it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.agent.approving import Approvals
from holdfast.agent.core.leave import Asking
from holdfast.agent.editing import Edit
from holdfast.agent.ground import Ground
from holdfast.agent.inquiring import Ask
from holdfast.agent.notes import find_notes
from holdfast.agent.patching import ApplyPatch
from holdfast.agent.ports import Tool, Workspace
from holdfast.agent.reading import Read
from holdfast.agent.running import Shells, shells_in
from holdfast.agent.searching import Engine, Search
from holdfast.agent.shelling import Shell
from holdfast.agent.skills import UseSkill, find_skills
from holdfast.agent.writing import Write
from holdfast.nouns import RelativePath


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """What the person has settled about tools.

    `leaves` is the file that lasting leaves are kept in, `skills` are directories of their own
    skills, and `inside` is where in the project they stand.
    """

    asking: Asking = Asking.ASK
    leaves: Path | None = None
    skills: tuple[Path, ...] = ()
    inside: RelativePath | None = None


class Toolbox:
    """All tools of a session by their names, and what a model is told beside them."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        shells: Shells,
        *,
        notes: tuple[tuple[str, str], ...],
        skills: tuple[tuple[str, str], ...],
        complaints: tuple[str, ...],
    ) -> None:
        self.tools = tools
        self.notes = notes  # of the project, by their paths, the nearest last: data
        self.skills = skills  # their names, and what each is for: data
        self.complaints = complaints  # what could not be used, for the person
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
        async with shells_in(ground) as shells:
            found = await find_skills(workspace, settings.skills)
            tools: list[Tool] = [
                Read(workspace),
                Search(workspace, ground, Engine.on(ground)),
                Edit(workspace, approvals),
                Write(workspace, approvals),
                ApplyPatch(workspace, approvals),
                Shell(shells, approvals),
                Ask(),
            ]
            if found.skills:
                tools.append(UseSkill(workspace, found))
            yield Toolbox(
                {tool.spec.name: tool for tool in tools},
                shells,
                notes=await find_notes(workspace, settings.inside),
                skills=tuple(found.menu),
                complaints=found.complaints,
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
