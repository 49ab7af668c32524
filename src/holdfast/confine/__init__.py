"""Where a process runs and what it can touch: places, namespaces, sandboxes.

What it offers is loaded when it is first asked for: the keeper has a part of this room in its
memory, and must stay small.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.confine.core.policy import Limits, Network, Policy, Strength
    from holdfast.confine.entry import Entry, enter
    from holdfast.confine.sandbox import Shut, clean, shut_in

__all__ = [
    "Entry",
    "Limits",
    "Network",
    "Policy",
    "Shut",
    "Strength",
    "clean",
    "enter",
    "shut_in",
]

_HOME = {
    "Entry": "entry",
    "Limits": "core.policy",
    "Network": "core.policy",
    "Policy": "core.policy",
    "Shut": "sandbox",
    "Strength": "core.policy",
    "clean": "sandbox",
    "enter": "entry",
    "shut_in": "sandbox",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
