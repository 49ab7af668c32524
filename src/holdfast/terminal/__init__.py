"""The terminal client of a host: transcript, input line, key bindings and notifications.

What it offers is loaded when it is first asked for: the launcher needs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.terminal.commands import Meaning
    from holdfast.terminal.conversation import Talk
    from holdfast.terminal.ports import Setting
    from holdfast.terminal.rendering import draw
    from holdfast.terminal.transcript import Transcript
    from holdfast.terminal.tty_guard import guarded

__all__ = ["Meaning", "Setting", "Talk", "Transcript", "draw", "guarded"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Meaning": "commands",
        "Setting": "ports",
        "Talk": "conversation",
        "Transcript": "transcript",
        "draw": "rendering",
        "guarded": "tty_guard",
    },
)
