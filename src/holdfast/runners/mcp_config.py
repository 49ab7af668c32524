"""Write MCP servers of an editor as settings of a Codex thread.

Codex adds the settings of a thread to those of its own files, table by table: a server whose name
is in both would get the variables of one and the command of the other. So the name of a server that
Codex has already is not used again, and a notice says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from holdfast.telemetry import Redactor

if TYPE_CHECKING:
    from holdfast.agent import McpServerConfig

START_LONGEST: Final = 30  # seconds for a server to start, as with our own agent
_RESERVED: Final = frozenset({"codex_apps"})  # a server of this name is ignored without a word


class _Settings(msgspec.Struct):
    mcp_servers: dict[str, object] | None = None
    mcp_optional_startup_grace_ms: object = None


class _Answer(msgspec.Struct):
    config: _Settings


class McpConfig(NamedTuple):
    """Settings that connect the servers of these names, and notices about those left out."""

    settings: dict[str, object]
    names: tuple[str, ...]
    notices: tuple[str, ...]


def mcp_config(
    servers: Sequence[McpServerConfig], settings: object, *, inherited: Sequence[str]
) -> McpConfig:
    """How a thread of Codex connects these servers.

    `settings` is what Codex answered to `config/read`. Codex gives servers only a few variables of
    its own environment; `inherited` are further ones that each gets.
    """
    known = _known(settings)
    notices = tuple(_refusal(each.name, known.mcp_servers or ()) for each in servers)
    fit = {
        server.name: _entry(server, inherited)
        for server, notice in zip(servers, notices, strict=True)
        if not notice
    }
    config: dict[str, object] = {"mcp_servers": fit} if fit else {}
    if fit and known.mcp_optional_startup_grace_ms is None:
        # Codex 0.166 begins a turn after 1 second without the tools of a server that still starts.
        config["mcp_optional_startup_grace_ms"] = START_LONGEST * 1000
    return McpConfig(config, tuple(fit), tuple(filter(None, notices)))


def secrets_of(servers: Sequence[McpServerConfig]) -> tuple[str, ...]:
    """The values of variables and headers that may be secrets, and the words of such headers.

    Left out is what names places and settings, and shows up in ordinary output: paths, and words
    without a digit, unless the name of the variable says that it is a secret.
    """
    found: dict[str, None] = {}
    for server in servers:
        for name, value in server.env.items():
            if _is_secret(f"{name}={value}", value):
                found[value] = None
        for name, value in server.headers.items():
            if _is_secret(f"{name}: {value}", value):
                found |= dict.fromkeys((value, *value.split()))
    return tuple(found)


def _is_secret(line: str, value: str) -> bool:
    is_plain = value.startswith(("/", "~", "./")) or not any(map(str.isdigit, value))
    return not is_plain or Redactor().text(line) != line


def _refusal(name: str, taken: Collection[str]) -> str:
    """Why Codex cannot have a server of this name; empty if it can."""
    if name in _RESERVED:
        return f"Not connected: the MCP server {name}. Codex reserves this name."
    if name in taken:
        return f"Not connected: the MCP server {name}. Codex has one of this name in its settings."
    return ""


def _entry(server: McpServerConfig, inherited: Sequence[str]) -> dict[str, object]:
    timeout = {"startup_timeout_sec": START_LONGEST}
    if server.url:
        return {"url": server.url, "http_headers": server.headers, **timeout}
    process = {"command": server.command, "args": server.args, "env": server.env}
    return {**process, "env_vars": [*inherited], **timeout}


def _known(answer: object) -> _Settings:
    """What an answer says; nothing where it cannot be read, as of a Codex of another age."""
    try:
        return msgspec.convert(answer, _Answer).config
    except msgspec.ValidationError:
        return _Settings()
