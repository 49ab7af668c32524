"""Our own coding agent: a conversation with a model that uses tools, and loses nothing.

What it offers is loaded when it is first asked for: not everyone asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.agent.conversation import OPTIONS, Talk, converse
    from holdfast.agent.loop import Budget, Crashes
    from holdfast.agent.mcp.config import editor_servers, own_servers
    from holdfast.agent.permission_rules import Asking
    from holdfast.agent.prompt import Surroundings, system_prompt
    from holdfast.agent.providers.http_provider import Deadlines, HttpModels, load_prices
    from holdfast.agent.providers.http_request import Proxies
    from holdfast.agent.providers.keys import (
        EnvironmentKeys,
        FileKeys,
        Key,
        KeyringKeys,
        Keys,
        KeySource,
        without_keys,
    )
    from holdfast.agent.providers.registry import Format, Provider, read_providers
    from holdfast.agent.providers.scripted import ScriptedModels, load_script
    from holdfast.agent.sandbox import Ground, toolchains_in
    from holdfast.agent.subagent import SubAgent
    from holdfast.agent.tool_set import Toolbox, ToolSettings, toolbox
    from holdfast.agent.turn_context import Kit, chosen
    from holdfast.agent.workspace import DraftWorkspace

__all__ = [
    "OPTIONS",
    "Asking",
    "Budget",
    "Crashes",
    "Deadlines",
    "DraftWorkspace",
    "EnvironmentKeys",
    "FileKeys",
    "Format",
    "Ground",
    "HttpModels",
    "Key",
    "KeySource",
    "KeyringKeys",
    "Keys",
    "Kit",
    "Provider",
    "Proxies",
    "ScriptedModels",
    "SubAgent",
    "Surroundings",
    "Talk",
    "ToolSettings",
    "Toolbox",
    "chosen",
    "converse",
    "editor_servers",
    "load_prices",
    "load_script",
    "own_servers",
    "read_providers",
    "system_prompt",
    "toolbox",
    "toolchains_in",
    "without_keys",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Asking": "permission_rules",
        "DraftWorkspace": "workspace",
        "Ground": "sandbox",
        "ToolSettings": "tool_set",
        "Toolbox": "tool_set",
        "editor_servers": "mcp.config",
        "own_servers": "mcp.config",
        "toolbox": "tool_set",
        "toolchains_in": "sandbox",
        "SubAgent": "subagent",
        "Budget": "loop",
        "Crashes": "loop",
        "Kit": "turn_context",
        "OPTIONS": "conversation",
        "Surroundings": "prompt",
        "Talk": "conversation",
        "chosen": "turn_context",
        "converse": "conversation",
        "system_prompt": "prompt",
        "Deadlines": "providers.http_provider",
        "EnvironmentKeys": "providers.keys",
        "FileKeys": "providers.keys",
        "Format": "providers.registry",
        "HttpModels": "providers.http_provider",
        "Key": "providers.keys",
        "KeySource": "providers.keys",
        "KeyringKeys": "providers.keys",
        "Keys": "providers.keys",
        "Provider": "providers.registry",
        "Proxies": "providers.http_request",
        "ScriptedModels": "providers.scripted",
        "load_prices": "providers.http_provider",
        "load_script": "providers.scripted",
        "read_providers": "providers.registry",
        "without_keys": "providers.keys",
    },
)
