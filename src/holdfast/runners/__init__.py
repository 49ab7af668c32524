"""Adapters to whoever carries a turn out, all in the same words.

What it offers is loaded when it is first asked for: no host needs all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.runners.around import Around
    from holdfast.runners.codex import CodexRunner
    from holdfast.runners.native import NativeRunner
    from holdfast.runners.ports import Conversation, Memory, Runner
    from holdfast.runners.rehearsal import DEMO, Rehearsal
    from holdfast.runners.sample import is_sample, write_sample
    from holdfast.runners.stage import Stage
    from holdfast.runners.veiling import Veiled

__all__ = [
    "DEMO",
    "Around",
    "CodexRunner",
    "Conversation",
    "Memory",
    "NativeRunner",
    "Rehearsal",
    "Runner",
    "Stage",
    "Veiled",
    "is_sample",
    "write_sample",
]

__getattr__ = face(
    __name__,
    {
        "Around": "around",
        "CodexRunner": "codex",
        "Conversation": "ports",
        "DEMO": "rehearsal",
        "Memory": "ports",
        "NativeRunner": "native",
        "Rehearsal": "rehearsal",
        "Runner": "ports",
        "Stage": "stage",
        "Veiled": "veiling",
        "is_sample": "sample",
        "write_sample": "sample",
    },
)
