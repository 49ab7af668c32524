"""Tools of MCP servers; those of a project need the person's permission.

A permission is bound to the command, its variables and the bytes of its program, and is checked
before every start.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import file_digest, sha256
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast.agent.arguments import fields, given, text
from holdfast.agent.failures import McpSettingsUnfit, McpUnavailable, ToolRefused
from holdfast.agent.mcp.config import (
    PROJECT_FILE,
    McpServerConfig,
    is_program,
    project_servers,
    server_permission,
    tool_names,
)
from holdfast.agent.mcp.server import McpServer, program_of
from holdfast.agent.model import FileKind, ToolResult, ToolSpec
from holdfast.agent.permission_rules import (
    PermissionRequest,
    PermissionScope,
    labelled,
    single_line,
)
from holdfast.agent.permissions import Permissions
from holdfast.agent.ports import FileTree, Tool, ToolContext, Workspace
from holdfast.agent.sandbox import SandboxConfig
from holdfast.agent.tools.patch_format import bounded
from holdfast.agent.tools.paths import place_of
from holdfast.failures import Failure
from holdfast.nouns import RelativePath

if TYPE_CHECKING:
    from holdfast.agent.mcp.session import Offered

ASK_FOR: Final = "mcp_server"
_RESULT_CHARS_MAX: Final = 50_000
_HASHED_BYTES_MAX: Final = 32 * 2**20  # of a program in the project
_SETTINGS_BYTES_MAX: Final = 256 * 1024


class McpPermissions:
    """Permissions to start servers; the person's own need none."""

    def __init__(
        self, workspace: Workspace, sandbox: SandboxConfig, approvals: Permissions
    ) -> None:
        self._workspace, self._ground, self._approvals = workspace, sandbox, approvals

    async def is_given(self, server: McpServerConfig) -> bool:
        """Whether the server may be started without asking."""
        return server.is_own or self._approvals.is_granted(await self._wish(server))

    async def require(self, server: McpServerConfig, context: ToolContext) -> None:
        """Return if the server may be started as it is now; asks the person if needed."""
        if not server.is_own:
            await self._approvals.require(await self._wish(server), context)

    async def require_tool(
        self, server: McpServerConfig, tool: str, arguments: object, context: ToolContext
    ) -> None:
        """Return if a tool that is not read-only may be used; asks the person if needed."""
        if server.allows(tool):
            return
        words = msgspec.json.format(msgspec.json.encode(arguments)).decode()
        facts = (("server", server.name), ("tool", tool), ("arguments", words))
        await self._approvals.require(
            PermissionRequest(PermissionScope.TOOL, "use a tool of an MCP server", facts), context
        )

    async def _wish(self, server: McpServerConfig) -> PermissionRequest:
        program = program_of(server, self._ground)

        def contents(tree: FileTree) -> list[tuple[str, str]]:
            words = [program or server.command, *filter(is_program, server.args)]
            found = ((word, _digest(tree, word, self._ground.root)) for word in words)
            return [(word, digest) for word, digest in found if digest is not None]

        return server_permission(
            server, [] if server.url else await self._workspace.within(contents)
        )


class McpTool:
    """A tool of a server, under a name that providers accept."""

    def __init__(
        self, name: str, offered: Offered, server: McpServer, permissions: McpPermissions
    ) -> None:
        words = f"[of the MCP server {server.server.name}] {offered.description}"
        self.spec = ToolSpec(name=name, description=words, parameters=offered.parameters)
        self.only_reads = offered.only_reads
        self._offered, self._server, self._permissions = offered, server, permissions

    def title(self, arguments: dict[str, object]) -> str:
        del arguments
        return single_line(f"{self._server.server.name}: {self._offered.name}")

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Call the tool; its result is untrusted data."""
        return await _used(self._server, self._offered, arguments, self._permissions, context)


class _Given(msgspec.Struct, frozen=True):
    server: str
    tool: str = ""
    arguments: dict[str, object] = {}


class ProjectServers:
    """Tool for servers of the project that are not permitted yet."""

    only_reads = False

    def __init__(self, servers: Sequence[McpServer], permissions: McpPermissions) -> None:
        self._servers = {each.server.name: each for each in servers}
        self._permissions = permissions
        names = tuple(self._servers)
        self.spec = ToolSpec(
            name=ASK_FOR,
            description=(
                "Use an MCP server that the project names; the person is asked before it starts. "
                "Without a tool it tells which ones the server has."
            ),
            parameters=fields(
                ("server",),
                server=text("Which server.", of=names),
                tool=text("Which of its tools."),
                arguments={"type": "object", "description": "What the tool is given."},
            ),
        )

    def title(self, arguments: dict[str, object]) -> str:
        asked = given(arguments, _Given)
        return single_line(f"{asked.server}: {asked.tool or 'which tools it has'}")

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Start the server with permission, and use it."""
        asked = given(arguments, _Given)
        server = self._servers.get(asked.server)
        if server is None:
            raise ToolRefused(reason=f"the project names no MCP server {asked.server!r}")
        offered = await server.offered(lambda: self._permissions.require(server.server, context))
        if not asked.tool:
            menu = msgspec.json.format(msgspec.json.encode(offered)).decode()
            about = {"server": asked.server}
            return ToolResult(
                labelled("mcp-tools", about, bounded(menu, chars_max=_RESULT_CHARS_MAX))
            )
        chosen = next((each for each in offered if each.name == asked.tool), None)
        if chosen is None:
            raise ToolRefused(reason=f"{asked.server} has no tool {asked.tool!r}")
        return await _used(server, chosen, asked.arguments, self._permissions, context)


async def mcp_tools(
    servers: Sequence[McpServer], permissions: McpPermissions, reserved: Collection[str]
) -> tuple[list[Tool], list[str]]:
    """Return the tools of all permitted servers, and complaints about servers that fail.

    One tool represents all other servers; it asks for permission.
    """
    found: dict[str, list[Offered]] = {}
    complaints: list[str] = []

    async def ask(server: McpServer) -> None:
        try:
            found[server.server.name] = await server.offered(_at_once)
        except Failure as failure:
            complaints.append(failure.user_message)

    allowed = [each for each in servers if await permissions.is_given(each.server)]
    async with anyio.create_task_group() as tasks:
        for server in allowed:
            tasks.start_soon(ask, server)
    every = [(each, offered) for each in allowed for offered in found.get(each.server.name, ())]
    names = tool_names([*reserved, ASK_FOR], [(each.server.name, of.name) for each, of in every])
    pairs = zip(names, every, strict=True)
    tools: list[Tool] = [McpTool(name, of, server, permissions) for name, (server, of) in pairs]
    others = [each for each in servers if each not in allowed]
    if others:
        tools.append(ProjectServers(others, permissions))
    return tools, complaints


async def servers_of(
    own: Sequence[McpServerConfig], workspace: Workspace, sandbox: SandboxConfig, tasks: TaskGroup
) -> tuple[list[McpServer], list[str]]:
    """Return the person's servers and those of the project with other names; starts none."""
    complaints: list[str] = []
    theirs: tuple[McpServerConfig, ...] = ()
    try:
        theirs = project_servers(await workspace.within(_settings))
    except McpSettingsUnfit as failure:
        complaints.append(failure.user_message)
    names = {each.name for each in own}
    every = [*own, *(each for each in theirs if each.name not in names)]
    return [McpServer(each, sandbox, tasks) for each in every], complaints


async def _at_once() -> None:
    """Permission was checked before."""


async def _used(
    server: McpServer,
    offered: Offered,
    arguments: dict[str, object],
    permissions: McpPermissions,
    context: ToolContext,
) -> ToolResult:
    if not offered.only_reads:
        await permissions.require_tool(server.server, offered.name, arguments, context)
    try:
        said, is_error = await server.call(
            offered.name, arguments, lambda: permissions.require(server.server, context)
        )
    except McpUnavailable as failure:
        return ToolResult(failure.user_message, is_error=True)
    about = {"server": server.server.name, "tool": offered.name}
    words = bounded(said, chars_max=_RESULT_CHARS_MAX)
    return ToolResult(labelled("mcp-result", about, words), is_error=is_error, shown=words)


def _settings(tree: FileTree) -> str:
    path = RelativePath.of(PROJECT_FILE)
    seen = tree.look(path)
    if seen is None or seen.sort is not FileKind.FILE:
        return ""
    return tree.read(path, _SETTINGS_BYTES_MAX).decode("utf-8", "replace")


def _digest(tree: FileTree, word: str, root: str) -> str | None:
    """Return the hash of the file that an argument names, if any."""
    seen, place = None, None
    with suppress(Failure):  # most arguments are not paths
        place = place_of(word, root)
        seen = None if place is None else tree.look(place)
    if place is not None and seen is not None and seen.sort in (FileKind.FILE, FileKind.LINK):
        data = tree.read(place, _HASHED_BYTES_MAX + 1)
        if len(data) > _HASHED_BYTES_MAX:
            raise ToolRefused(reason=f"{place} is too large to be looked at before it is started")
        return sha256(data).hexdigest()
    if os.path.isabs(word) and os.path.isfile(word):
        with open(word, "rb") as file:
            return file_digest(file, "sha256").hexdigest()
    return None
