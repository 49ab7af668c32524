"""Tool that asks the person a question."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from holdfast.agent.arguments import fields, given, several, text
from holdfast.agent.model import ToolResult, ToolSpec
from holdfast.agent.permission_rules import single_line, visible
from holdfast.agent.ports import ToolContext

NOBODY: Final = "Decide yourself"
_DETAIL_CHARS_MAX: Final = 4000

_SPEC: Final = ToolSpec(
    name="ask",
    description=(
        "Ask the person something that only they can decide, and wait for the answer. Do not ask "
        "for what you can find out. If nobody is there you are told to decide yourself."
    ),
    parameters=fields(
        ("question",),
        question=text("The question, in a line."),
        detail=text("What they need to know to answer it."),
        choices=several("The answers to choose from; without them, any words.", text("An answer.")),
    ),
)


class _Given(msgspec.Struct, frozen=True):
    question: Annotated[str, Meta(min_length=1)]
    detail: str = ""
    choices: Annotated[list[str], Meta(max_length=10)] = []


class AskTool:
    """Asks the person on behalf of the model."""

    spec = _SPEC
    only_reads = False

    def title(self, arguments: dict[str, object]) -> str:
        return f"Ask: {single_line(given(arguments, _Given).question)}"

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Ask, and return the answer."""
        asked = given(arguments, _Given)
        shown = [single_line(each) for each in asked.choices]
        choices = tuple(dict.fromkeys((*shown, NOBODY))) if shown else ()
        question = f"The agent asks: {single_line(asked.question, chars_max=300)}"
        said = await context.ask(question, visible(asked.detail[:_DETAIL_CHARS_MAX]), choices)
        if said in ("", NOBODY):
            return ToolResult("Nobody answered: decide yourself, and say what you decided.")
        whole = asked.choices[shown.index(said)] if said in shown else said
        return ToolResult(f"The person answered: {whole}")
