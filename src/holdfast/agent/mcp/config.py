"""MCP server configuration: files, tool names, and permission requests.

A project's configuration is untrusted: the person's variables are never expanded in it, and it
grants nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.agent.failures import McpSettingsUnfit
from holdfast.agent.permission_rules import PermissionRequest, PermissionScope

PROJECT_FILE: Final = ".mcp.json"
EVERY_TOOL: Final = "*"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_PROGRAMS: Final = (
    *(".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".rb", ".pl", ".php"),
    *(".lua", ".jar", ".exe"),
)
_TOOL_CHARS_MAX: Final = 64
_SERVERS_MAX: Final = 32


class _Entry(msgspec.Struct, frozen=True):
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    disabled: bool = False
    always_allow: tuple[str, ...] = msgspec.field(name="alwaysAllow", default=())


class _File(msgspec.Struct, frozen=True):
    servers: dict[str, _Entry] = msgspec.field(name="mcpServers", default_factory=dict[str, _Entry])


class McpServerConfig(msgspec.Struct, frozen=True):
    """An MCP server: a command with arguments and variables, or a URL with headers."""

    name: str
    is_own: bool  # configured by the person, not by the project
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    allowed: tuple[str, ...] = ()  # tools that need no permission

    def allows(self, tool: str) -> bool:
        """Whether this tool may be used without asking."""
        return tool in self.allowed or EVERY_TOOL in self.allowed


def own_servers(file: str, text: str, variables: Mapping[str, str]) -> tuple[McpServerConfig, ...]:
    """Parse the person's configuration; `${NAME}` is expanded from `variables`."""

    def filled(value: str) -> str:
        return _VARIABLE.sub(lambda found: variables.get(found[1], ""), value)

    return tuple(
        McpServerConfig(
            name,
            True,
            entry.command,
            tuple(map(filled, entry.args)),
            {key: filled(value) for key, value in entry.env.items()},
            entry.url,
            {key: filled(value) for key, value in entry.headers.items()},
            entry.always_allow,
        )
        for name, entry in _entries(file, text)
    )


def editor_servers(file: str, text: str) -> tuple[McpServerConfig, ...]:
    """Parse the servers that an editor passed for one session, with its user's consent."""
    return tuple(
        McpServerConfig(name, True, each.command, each.args, each.env, each.url, each.headers)
        for name, each in _entries(file, text)
    )


def project_servers(text: str) -> tuple[McpServerConfig, ...]:
    """Parse a project's configuration, without expansion."""
    return tuple(
        McpServerConfig(name, False, each.command, each.args, each.env, each.url, each.headers)
        for name, each in _entries(PROJECT_FILE, text)
    )


def server_permission(
    server: McpServerConfig, contents: Sequence[tuple[str, str]]
) -> PermissionRequest:
    """Return the request to start a server, with its complete command and variables.

    `contents` are (path, hash) of the program and the scripts it runs: any changed byte asks again.
    """
    if server.url:
        headers = [(f"header {name}", value) for name, value in sorted(server.headers.items())]
        facts = (("server", server.name), ("address", server.url), *headers)
        return PermissionRequest(
            PermissionScope.SERVER, "reach an MCP server that the project names", facts
        )
    return PermissionRequest(
        PermissionScope.SERVER,
        "start an MCP server that the project names, outside of the sandbox",
        (
            ("server", server.name),
            ("command", msgspec.json.encode((server.command, *server.args)).decode()),
            *((f"variable {name}", value) for name, value in sorted(server.env.items())),
            *((f"file {path}", digest) for path, digest in contents),
        ),
    )


def is_program(word: str) -> bool:
    """Whether an argument looks like a program; data files may change without asking again."""
    return word.lower().endswith(_PROGRAMS)


def tool_names(reserved: Collection[str], tools: Sequence[tuple[str, str]]) -> list[str]:
    """Return a valid name for each (server, tool); ambiguous ones get the server's name."""
    plain = [_UNFIT.sub("_", tool)[:_TOOL_CHARS_MAX] or "_" for _, tool in tools]
    taken = set(reserved)
    made: list[str] = []
    for (server, tool), name in zip(tools, plain, strict=True):
        if name in reserved or plain.count(name) > 1:
            name = _UNFIT.sub("_", f"{server}_{tool}")
        if len(name) > _TOOL_CHARS_MAX or name in taken:
            mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
            name = f"{name[: _TOOL_CHARS_MAX - 9]}_{mark}"
        taken.add(name)
        made.append(name)
    return made


def _entries(file: str, text: str) -> list[tuple[str, _Entry]]:
    if not text.strip():
        return []
    try:
        read = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise McpSettingsUnfit(file=file, reason=str(error)) from error
    if len(read.servers) > _SERVERS_MAX:
        raise McpSettingsUnfit(file=file, reason=f"it names more than {_SERVERS_MAX} servers")
    for name, entry in read.servers.items():
        if (reason := _complaint(name, entry)) is not None:
            raise McpSettingsUnfit(file=file, reason=reason)
    return [(name, entry) for name, entry in read.servers.items() if not entry.disabled]


def _complaint(name: str, entry: _Entry) -> str | None:
    if not _NAME.fullmatch(name):
        return f"{name[:40]!r} is no name of letters, digits, _ and -"
    if bool(entry.command) == bool(entry.url):
        return f"{name} needs either a command or a url"
    if entry.url and not entry.url.startswith(("https://", "http://")):
        return f"the url of {name} is neither http nor https"
    if any("\0" in word for word in (entry.command, *entry.args, *entry.env, *entry.env.values())):
        return f"there is a NUL in the command of {name}"
    return None
