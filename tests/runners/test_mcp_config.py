"""MCP servers become settings of a Codex thread, or a notice says why they do not."""

from __future__ import annotations

import pytest

from holdfast.agent import McpServerConfig
from holdfast.runners.mcp_config import McpConfig, mcp_config, secrets_of

STDIO = McpServerConfig("a", True, "node", ("x.js",), {"K": "v"})
HTTP = McpServerConfig("b", True, url="https://there/mcp", headers={"X-Key": "v"})
GRACE = "mcp_optional_startup_grace_ms"
ENTRIES = {
    "a": {
        **{"command": "node", "args": ("x.js",), "env": {"K": "v"}},
        **{"env_vars": ["MARK"], "startup_timeout_sec": 30},
    },
    "b": {
        **{"url": "https://there/mcp", "http_headers": {"X-Key": "v"}},
        "startup_timeout_sec": 30,
    },
}


@pytest.mark.parametrize(
    "settings", [None, {}, {"config": {"mcp_servers": None}}, {"config": {GRACE: None}}]
)
def test_servers_are_settings_and_are_waited_for(settings: object) -> None:
    made = mcp_config((STDIO, HTTP), settings, inherited=("MARK",))

    assert made == McpConfig({"mcp_servers": ENTRIES, GRACE: 30_000}, ("a", "b"), ())


def test_how_long_the_person_has_codex_wait_is_left_alone() -> None:
    made = mcp_config((STDIO,), {"config": {GRACE: 0}}, inherited=("MARK",))

    assert made == McpConfig({"mcp_servers": {"a": ENTRIES["a"]}}, ("a",), ())


def test_a_server_of_the_persons_own_is_not_mixed_with_one_of_the_editor() -> None:
    reserved = McpServerConfig("codex_apps", True, "node")
    settings = {"config": {"mcp_servers": {"a": {"command": "mine"}}, GRACE: 0}}
    made = mcp_config((STDIO, reserved), settings, inherited=())

    notices = (
        "Not connected: the MCP server a. Codex has one of this name in its settings.",
        "Not connected: the MCP server codex_apps. Codex reserves this name.",
    )
    assert made == McpConfig({}, (), notices)


@pytest.mark.promise("T6")
def test_values_that_may_be_secrets_are_known() -> None:
    env = {
        **{"TOKEN": "correct-horse", "OTHER": "abcdef123456", "ROOT": "/home/me/project2"},
        **{"NODE_ENV": "production"},
    }
    headers = {"Authorization": "Bearer abc-def-ghi", "Accept": "application/json"}
    servers = (
        McpServerConfig("a", True, "node", env=env),
        McpServerConfig("b", True, url="u", headers=headers),
    )

    assert secrets_of(servers) == (
        *("correct-horse", "abcdef123456"),
        *("Bearer abc-def-ghi", "Bearer", "abc-def-ghi"),
    )
