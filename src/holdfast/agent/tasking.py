"""Let a model keep a plan that the person sees; it stands in the conversation alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from holdfast.agent.core import plan
from holdfast.agent.core.arguments import fields, given, number, several, text
from holdfast.agent.model import AnyMessage, Done, Progress, ToolSpec
from holdfast.agent.ports import Desk

_SPEC: Final = ToolSpec(
    name=plan.TOOL,
    description=(
        "Keep a plan of what you mean to do, which the person sees. For work of several steps: add "
        "them first, then update each as you begin it and when it is done. All changes of a call "
        "are made, or none. Without changes it shows the plan."
    ),
    parameters=fields(
        (),
        changes=several(
            "What to change, in order.",
            fields(
                ("action",),
                action=text("What to do.", of=tuple(plan.Deed)),
                number=number("For update and remove: which task.", least=1),
                text=text("What is to be done, in a line."),
                progress=text("How far it is.", of=tuple(Progress)),
            ),
        ),
    ),
)

Said = Callable[[], Iterable[AnyMessage]]
"""Everything on the way to the head of the conversation, the newest first."""


class _Given(msgspec.Struct, frozen=True):
    changes: list[plan.Step] = []


class Tasks:
    """Changes the plan that stands in the conversation."""

    spec = _SPEC
    only_reads = False

    def __init__(self, said: Said) -> None:
        self._said = said

    def title(self, arguments: dict[str, object]) -> str:
        """What a call does, in a line for the person."""
        return "Plan" if given(arguments, _Given).changes else "Look at the plan"

    async def use(self, arguments: dict[str, object], desk: Desk) -> Done:
        """Change the plan, and tell it whole."""
        del desk  # it has nothing to ask
        steps = given(arguments, _Given).changes
        after = plan.changed(plan.plan_in(self._said()), steps)
        return Done(plan.told(after), plan=after if steps else None)
