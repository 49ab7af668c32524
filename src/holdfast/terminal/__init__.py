"""The terminal: what a person sees of a session and types into it, whatever dies behind it.

What it offers is loaded when it is first asked for: the launcher needs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.terminal.drawing import draw
    from holdfast.terminal.editing import serve_editor
    from holdfast.terminal.guard import guarded
    from holdfast.terminal.meaning import Meaning
    from holdfast.terminal.ports import Setting
    from holdfast.terminal.talking import Talk
    from holdfast.terminal.transcript import Transcript

__all__ = ["Meaning", "Setting", "Talk", "Transcript", "draw", "guarded", "serve_editor"]

__getattr__ = face(
    __name__,
    {
        "Meaning": "meaning",
        "Setting": "ports",
        "Talk": "talking",
        "Transcript": "transcript",
        "draw": "drawing",
        "guarded": "guard",
        "serve_editor": "editing",
    },
)
