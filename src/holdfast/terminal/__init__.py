"""The terminal: what a person sees and types, and what of it may reach their screen.

What it offers is loaded when it is first asked for: most commands only need its sanitiser.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.terminal.core.printable import cut, printable, prose
    from holdfast.terminal.guard import guarded
    from holdfast.terminal.talking import Setting, Talk

__all__ = ["Setting", "Talk", "cut", "guarded", "printable", "prose"]

_HOME = {
    "Setting": "talking",
    "Talk": "talking",
    "cut": "core.printable",
    "guarded": "guard",
    "printable": "core.printable",
    "prose": "core.printable",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
