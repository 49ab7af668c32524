"""Our own coding agent: a conversation with a model that uses tools, and loses nothing.

What it offers is loaded when it is first asked for: not everyone asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.agent.conversation import OPTIONS, AgentConversation, open_conversation
    from holdfast.agent.loop import BudgetLimits, CrashHistory
    from holdfast.agent.mcp.config import McpServerConfig, editor_servers, own_servers
    from holdfast.agent.permission_rules import PermissionMode
    from holdfast.agent.prompt import PromptContext, system_prompt
    from holdfast.agent.providers.http_provider import Deadlines, HttpModels, load_prices
    from holdfast.agent.providers.http_request import Proxies
    from holdfast.agent.providers.keys import (
        ApiKey,
        EnvironmentKeys,
        FileKeys,
        KeyringKeys,
        Keys,
        KeySource,
        without_keys,
    )
    from holdfast.agent.providers.registry import Format, Provider, read_providers
    from holdfast.agent.providers.scripted import ScriptedModels, load_script
    from holdfast.agent.sandbox import SandboxConfig, toolchains_in
    from holdfast.agent.subagent import SubAgent
    from holdfast.agent.tool_set import ToolSet, ToolSettings, open_tool_set
    from holdfast.agent.turn_context import AgentConfig, chosen
    from holdfast.agent.workspace import DraftWorkspace

__all__ = [
    "OPTIONS",
    "AgentConfig",
    "AgentConversation",
    "ApiKey",
    "BudgetLimits",
    "CrashHistory",
    "Deadlines",
    "DraftWorkspace",
    "EnvironmentKeys",
    "FileKeys",
    "Format",
    "HttpModels",
    "KeySource",
    "KeyringKeys",
    "Keys",
    "McpServerConfig",
    "PermissionMode",
    "PromptContext",
    "Provider",
    "Proxies",
    "SandboxConfig",
    "ScriptedModels",
    "SubAgent",
    "ToolSet",
    "ToolSettings",
    "chosen",
    "editor_servers",
    "load_prices",
    "load_script",
    "open_conversation",
    "open_tool_set",
    "own_servers",
    "read_providers",
    "system_prompt",
    "toolchains_in",
    "without_keys",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "PermissionMode": "permission_rules",
        "DraftWorkspace": "workspace",
        "SandboxConfig": "sandbox",
        "ToolSettings": "tool_set",
        "ToolSet": "tool_set",
        "McpServerConfig": "mcp.config",
        "editor_servers": "mcp.config",
        "own_servers": "mcp.config",
        "open_tool_set": "tool_set",
        "toolchains_in": "sandbox",
        "SubAgent": "subagent",
        "BudgetLimits": "loop",
        "CrashHistory": "loop",
        "AgentConfig": "turn_context",
        "OPTIONS": "conversation",
        "PromptContext": "prompt",
        "AgentConversation": "conversation",
        "chosen": "turn_context",
        "open_conversation": "conversation",
        "system_prompt": "prompt",
        "Deadlines": "providers.http_provider",
        "EnvironmentKeys": "providers.keys",
        "FileKeys": "providers.keys",
        "Format": "providers.registry",
        "HttpModels": "providers.http_provider",
        "ApiKey": "providers.keys",
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
