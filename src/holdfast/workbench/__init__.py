"""Drafts, checkpoints and publications of a person's project.

What it offers is loaded when it is first asked for: hashing and compressing are not for everyone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.workbench.core.coverage import EVERYTHING, Coverage
    from holdfast.workbench.core.tree import Node, NodeSort
    from holdfast.workbench.store import Means, Store, Subject

__all__ = ["EVERYTHING", "Coverage", "Means", "Node", "NodeSort", "Store", "Subject"]

_HOME = {
    "Coverage": "core.coverage",
    "EVERYTHING": "core.coverage",
    "Means": "store",
    "Node": "core.tree",
    "NodeSort": "core.tree",
    "Store": "store",
    "Subject": "store",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
