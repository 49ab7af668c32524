"""What a conversation is held with: models, tools, rules and limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.agent.core.budget import Budget
from holdfast.agent.hiding import Known
from holdfast.agent.model import Choice, Spent, Tokens, ToolSpec
from holdfast.agent.ports import Models, Tool

TOOL_LONGEST: Final = 600.0  # seconds, not counting those that a person is waited for
SILENCE_LONGEST: Final = 120.0  # before it is said that a tool tells nothing


def _anybody(provider: str) -> None:
    del provider


def _none() -> tuple[str, ...]:
    return ()


async def nothing() -> None:
    """Nothing is to be ended."""


async def _never_changed() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """Everything that turns are taken with.

    `agreed` raises what is missing before anything goes to a provider, each time anew. `clear`
    ends whatever tools have left running, when a turn is stopped. `known` are the keys that stay
    out of everything that a turn tells. `revision` is another number after files have changed.
    """

    models: Models
    choice: Choice
    tools: Mapping[str, Tool]
    system: str = ""
    complaints: tuple[str, ...] = ()  # of what could not be used, for the person
    budget: Budget = field(default_factory=Budget)
    agreed: Callable[[str], None] = _anybody
    known: Known = _none
    clear: Callable[[], Awaitable[None]] = nothing
    revision: Callable[[], Awaitable[int]] = _never_changed
    tool_longest: float = TOOL_LONGEST
    silence_longest: float = SILENCE_LONGEST

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools, as a model is told of them."""
        return tuple(tool.spec for tool in self.tools.values())

    def paid(self, choice: Choice, tokens: Tokens) -> Spent:
        """What is to be kept of what an answer cost."""
        cost = self.models.price(choice, tokens)
        return Spent(choice.provider, choice.model, tokens, cost)


def chosen(word: str, otherwise: Choice, *, effort: str = "") -> Choice:
    """The model that a word such as `provider/model` names; what it leaves out stays."""
    provider, mark, model = word.partition("/")
    if not mark:
        provider, model = otherwise.provider, word
    model = model or otherwise.model
    return Choice(provider or otherwise.provider, model, effort or otherwise.effort)
