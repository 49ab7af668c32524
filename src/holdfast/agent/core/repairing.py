"""Decide what is told in place of results that never came, such that any history is valid."""

from __future__ import annotations

from typing import Final

from holdfast.agent.core.line import missing
from holdfast.agent.core.tree import Tree
from holdfast.agent.model import Mended

ABORTED: Final = "[Aborted by user]"
_BEGUN: Final = " It had begun; it may or may not have completed."


def repairs(tree: Tree, *, is_aborted: bool = False) -> tuple[Mended, ...]:
    """What is to be kept for every call on the way that has no result; nothing, if all have one.

    It is said of a history that nobody is working on. `is_aborted`: the person has just stopped
    the calls that are open.
    """
    line = tree.line
    lost = tuple(Mended(call, missing(call, tree.begun)) for call in line.gaps)
    if is_aborted:
        return lost + tuple(
            Mended(call, ABORTED + _BEGUN if call in tree.begun else ABORTED) for call in line.open
        )
    return lost + tuple(Mended(call, missing(call, tree.begun)) for call in line.open)


def told(count: int) -> str:
    """What the person is told of repairs."""
    calls = "1 tool call" if count == 1 else f"{count} tool calls"
    return f"{calls} had no result; the model is told that and why."
