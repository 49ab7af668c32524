"""The terminal: what a person sees of a session and types into it, whatever dies behind it.

What it offers is loaded when it is first asked for: the launcher needs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.terminal.editing import serve_editor
    from holdfast.terminal.guard import guarded
    from holdfast.terminal.talking import Setting, Talk

__all__ = ["Setting", "Talk", "guarded", "serve_editor"]

_HOME = {
    "Setting": "talking",
    "Talk": "talking",
    "guarded": "guard",
    "serve_editor": "editing",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
