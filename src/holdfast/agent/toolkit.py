"""All tools of a session, together: what they work on, and what ends with them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from holdfast.agent.approving import Approvals
from holdfast.agent.editing import Edit
from holdfast.agent.ground import Ground
from holdfast.agent.patching import ApplyPatch
from holdfast.agent.ports import Tool
from holdfast.agent.reading import Read
from holdfast.agent.running import shells_in
from holdfast.agent.searching import Engine, Search
from holdfast.agent.shelling import Shell
from holdfast.agent.workspace import DraftWorkspace
from holdfast.agent.writing import Write
from holdfast.workbench import Workbench
from holdfast.world import WriterThread


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Tools by their names; `without_person` are those that an agent below another one has.

    `clear` ends every process that they have left running.
    """

    tools: Mapping[str, Tool]
    without_person: Mapping[str, Tool]
    clear: Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_tools(workbench: Workbench, draft: str, ground: Ground) -> AsyncGenerator[Tools]:
    """The tools for a draft; whatever they have started ends with the block."""
    approvals = Approvals()
    with WriterThread() as thread:
        workspace = DraftWorkspace(workbench, draft, ground.root, thread)
        async with shells_in(ground) as shells:
            made: tuple[Tool, ...] = (
                Read(workspace),
                Search(workspace, ground, Engine.on(ground)),
                Edit(workspace, approvals),
                Write(workspace, approvals),
                ApplyPatch(workspace, approvals),
                Shell(shells, approvals),
            )
            named = {tool.spec.name: tool for tool in made}
            clear = partial(shells.end_all, "the turn was stopped")
            yield Tools(tools=named, without_person=named, clear=clear)
