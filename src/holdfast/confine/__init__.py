"""Where a process runs and what it can touch: places, namespaces, sandboxes.

What it offers is loaded when it is first asked for: the keeper has a part of this room in its
memory, and must stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.confine.entry import ProcessEntry, enter
    from holdfast.confine.fence import Fence
    from holdfast.confine.model import Holder, LivingPlace, PlaceSpec
    from holdfast.confine.place.creation import create, foreign_owner, refuse_foreign_owners
    from holdfast.confine.place.files import MergedRootFiles, NamespaceFiles
    from holdfast.confine.place.locations import remember_layers
    from holdfast.confine.place.place import Place, end, find, places
    from holdfast.confine.place.remount import remount
    from holdfast.confine.policy import (
        PROTECTED,
        SYSTEM,
        Network,
        ResourceLimits,
        SandboxPolicy,
        Strength,
        allowed_environment,
        is_within,
    )
    from holdfast.confine.proxy.proxy_loop import FilteringProxy
    from holdfast.confine.proxy.rules import AllowList, allow_list
    from holdfast.confine.sandbox.git_config import obeyed_in
    from holdfast.confine.sandbox.leftovers import is_stand_in
    from holdfast.confine.sandbox.placeholder_sweeper import clean, clean_all
    from holdfast.confine.sandbox.preflight import strength_within
    from holdfast.confine.sandbox.protected_files import (
        CONFIG_BYTES_MAX,
        read_configuration,
        shared_configurations,
    )
    from holdfast.confine.sandbox.sandbox import SandboxedEntry, prepare_sandbox
    from holdfast.confine.sandbox.start_gate import PROXY_PORT, StartGate, command_of

__all__ = [
    "CONFIG_BYTES_MAX",
    "PROTECTED",
    "PROXY_PORT",
    "SYSTEM",
    "AllowList",
    "Fence",
    "FilteringProxy",
    "Holder",
    "LivingPlace",
    "MergedRootFiles",
    "NamespaceFiles",
    "Network",
    "Place",
    "PlaceSpec",
    "ProcessEntry",
    "ResourceLimits",
    "SandboxPolicy",
    "SandboxedEntry",
    "StartGate",
    "Strength",
    "allow_list",
    "allowed_environment",
    "clean",
    "clean_all",
    "command_of",
    "create",
    "end",
    "enter",
    "find",
    "foreign_owner",
    "is_stand_in",
    "is_within",
    "obeyed_in",
    "places",
    "prepare_sandbox",
    "read_configuration",
    "refuse_foreign_owners",
    "remember_layers",
    "remount",
    "shared_configurations",
    "strength_within",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "CONFIG_BYTES_MAX": "sandbox.protected_files",
        "PROTECTED": "policy",
        "SYSTEM": "policy",
        "PROXY_PORT": "sandbox.start_gate",
        "AllowList": "proxy.rules",
        "ProcessEntry": "entry",
        "Fence": "fence",
        "NamespaceFiles": "place.files",
        "Holder": "model",
        "ResourceLimits": "policy",
        "LivingPlace": "model",
        "Network": "policy",
        "Place": "place.place",
        "PlaceSpec": "model",
        "SandboxPolicy": "policy",
        "FilteringProxy": "proxy.proxy_loop",
        "MergedRootFiles": "place.files",
        "SandboxedEntry": "sandbox.sandbox",
        "Strength": "policy",
        "StartGate": "sandbox.start_gate",
        "allow_list": "proxy.rules",
        "allowed_environment": "policy",
        "clean": "sandbox.placeholder_sweeper",
        "clean_all": "sandbox.placeholder_sweeper",
        "command_of": "sandbox.start_gate",
        "create": "place.creation",
        "end": "place.place",
        "enter": "entry",
        "find": "place.place",
        "foreign_owner": "place.creation",
        "is_stand_in": "sandbox.leftovers",
        "is_within": "policy",
        "obeyed_in": "sandbox.git_config",
        "places": "place.place",
        "read_configuration": "sandbox.protected_files",
        "refuse_foreign_owners": "place.creation",
        "remember_layers": "place.locations",
        "remount": "place.remount",
        "shared_configurations": "sandbox.protected_files",
        "prepare_sandbox": "sandbox.sandbox",
        "strength_within": "sandbox.preflight",
    },
)
