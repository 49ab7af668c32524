"""Our own coding agent: a conversation with a model that uses tools, and loses nothing.

What it offers is loaded when it is first asked for: not everyone asks a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.agent.catalogue import Toolbox, ToolSettings, toolbox
    from holdfast.agent.core.budget import Budget
    from holdfast.agent.core.crashing import Crashes
    from holdfast.agent.core.http_place import Proxies
    from holdfast.agent.core.leave import Asking
    from holdfast.agent.core.prompting import Surroundings, system_prompt
    from holdfast.agent.core.providers import Format, Provider, read_providers
    from holdfast.agent.core.servers import editor_servers, own_servers
    from holdfast.agent.exchange import Deadlines
    from holdfast.agent.ground import Ground, toolchains_in
    from holdfast.agent.keys import (
        EnvironmentKeys,
        FileKeys,
        Key,
        KeyringKeys,
        Keys,
        KeySource,
        without_keys,
    )
    from holdfast.agent.kit import Kit, chosen
    from holdfast.agent.pricing import load_prices
    from holdfast.agent.providing import HttpModels
    from holdfast.agent.scripted import ScriptedModels, load_script
    from holdfast.agent.sub_agent import SubAgent
    from holdfast.agent.talking import OPTIONS, Talk, converse
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

__getattr__ = face(
    __name__,
    {
        "Asking": "core.leave",
        "DraftWorkspace": "workspace",
        "Ground": "ground",
        "ToolSettings": "catalogue",
        "Toolbox": "catalogue",
        "editor_servers": "core.servers",
        "own_servers": "core.servers",
        "toolbox": "catalogue",
        "toolchains_in": "ground",
        "SubAgent": "sub_agent",
        "Budget": "core.budget",
        "Crashes": "core.crashing",
        "Kit": "kit",
        "OPTIONS": "talking",
        "Surroundings": "core.prompting",
        "Talk": "talking",
        "chosen": "kit",
        "converse": "talking",
        "system_prompt": "core.prompting",
        "Deadlines": "exchange",
        "EnvironmentKeys": "keys",
        "FileKeys": "keys",
        "Format": "core.providers",
        "HttpModels": "providing",
        "Key": "keys",
        "KeySource": "keys",
        "KeyringKeys": "keys",
        "Keys": "keys",
        "Provider": "core.providers",
        "Proxies": "core.http_place",
        "ScriptedModels": "scripted",
        "load_prices": "pricing",
        "load_script": "scripted",
        "read_providers": "core.providers",
        "without_keys": "keys",
    },
)
