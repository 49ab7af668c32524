"""Where a process runs and what it can touch: places, namespaces, sandboxes.

What it offers is loaded when it is first asked for: the keeper has a part of this room in its
memory, and must stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.confine.cleaning import clean, clean_all
    from holdfast.confine.core.allowlist import AllowList, allow_list
    from holdfast.confine.core.fence import Fence
    from holdfast.confine.core.git_config import obeyed_in
    from holdfast.confine.core.ground import SYSTEM
    from holdfast.confine.core.leftovers import is_stand_in
    from holdfast.confine.core.policy import (
        PROTECTED,
        Limits,
        Network,
        Policy,
        Strength,
        allowed_environment,
        is_within,
    )
    from holdfast.confine.creating import create
    from holdfast.confine.entry import Entry, enter
    from holdfast.confine.gated import Gated
    from holdfast.confine.model import Holder, LivingPlace, PlaceSpec
    from holdfast.confine.obeyed import (
        CONFIG_BYTES_MAX,
        read_configuration,
        shared_configurations,
    )
    from holdfast.confine.ownership import foreign_owner, refuse_foreign_owners
    from holdfast.confine.place import Place, end, find, places
    from holdfast.confine.preflight import strength_within
    from holdfast.confine.proxy_loop import Proxy
    from holdfast.confine.remounting import remount
    from holdfast.confine.rooted import Rooted
    from holdfast.confine.sandbox import Shut, shut_in
    from holdfast.confine.threshold import PROXY_PORT, Threshold, command_of
    from holdfast.confine.whereabouts import remember_layers

__all__ = [
    "CONFIG_BYTES_MAX",
    "PROTECTED",
    "PROXY_PORT",
    "SYSTEM",
    "AllowList",
    "Entry",
    "Fence",
    "Gated",
    "Holder",
    "Limits",
    "LivingPlace",
    "Network",
    "Place",
    "PlaceSpec",
    "Policy",
    "Proxy",
    "Rooted",
    "Shut",
    "Strength",
    "Threshold",
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
    "read_configuration",
    "refuse_foreign_owners",
    "remember_layers",
    "remount",
    "shared_configurations",
    "shut_in",
    "strength_within",
]

__getattr__ = face(
    __name__,
    {
        "CONFIG_BYTES_MAX": "obeyed",
        "PROTECTED": "core.policy",
        "SYSTEM": "core.ground",
        "PROXY_PORT": "threshold",
        "AllowList": "core.allowlist",
        "Entry": "entry",
        "Fence": "core.fence",
        "Gated": "gated",
        "Holder": "model",
        "Limits": "core.policy",
        "LivingPlace": "model",
        "Network": "core.policy",
        "Place": "place",
        "PlaceSpec": "model",
        "Policy": "core.policy",
        "Proxy": "proxy_loop",
        "Rooted": "rooted",
        "Shut": "sandbox",
        "Strength": "core.policy",
        "Threshold": "threshold",
        "allow_list": "core.allowlist",
        "allowed_environment": "core.policy",
        "clean": "cleaning",
        "clean_all": "cleaning",
        "command_of": "threshold",
        "create": "creating",
        "end": "place",
        "enter": "entry",
        "find": "place",
        "foreign_owner": "ownership",
        "is_stand_in": "core.leftovers",
        "is_within": "core.policy",
        "obeyed_in": "core.git_config",
        "places": "place",
        "read_configuration": "obeyed",
        "refuse_foreign_owners": "ownership",
        "remember_layers": "whereabouts",
        "remount": "remounting",
        "shared_configurations": "obeyed",
        "shut_in": "sandbox",
        "strength_within": "preflight",
    },
)
