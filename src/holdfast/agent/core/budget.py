"""Decide whether a turn may go on: how often, how much, for how much and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.agent.failures import CostSpent, StepsSpent, TimeSpent, TokensSpent
from holdfast.agent.model import Tokens
from holdfast.failures import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one turn may take; None is no limit."""

    steps: int | None = 500  # requests to the model
    tokens: int | None = None  # that were not cached, and what was answered
    cost_usd: float | None = None
    seconds: float | None = 6 * 3600.0


@dataclass(slots=True)
class Purse:
    """What one turn has taken so far."""

    began: float
    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def pay(self, tokens: Tokens, cost_usd: float | None) -> None:
        """Note what an answer took."""
        self.tokens += tokens.input - tokens.cached + tokens.output
        self.cost_usd += cost_usd or 0.0

    def empty(self, budget: Budget, *, now: float) -> Failure | None:
        """Why the model may not be asked again, if it may not."""
        if budget.steps is not None and self.steps >= budget.steps:
            return StepsSpent(most=budget.steps)
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return TokensSpent(spent=self.tokens, most=budget.tokens)
        if budget.cost_usd is not None and self.cost_usd >= budget.cost_usd:
            return CostSpent(spent=round(self.cost_usd, 4), most=budget.cost_usd)
        if budget.seconds is not None and now - self.began >= budget.seconds:
            return TimeSpent(most=budget.seconds)
        return None
