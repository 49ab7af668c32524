"""A turn may take so much and no more."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import CostSpent, StepsSpent, TimeSpent, TokensSpent
from holdfast.agent.loop import Budget, BudgetLimits
from holdfast.agent.model import Tokens
from holdfast.failures import Failure


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (BudgetLimits(), None),
        (BudgetLimits(steps=None, seconds=None), None),
        (BudgetLimits(steps=4), None),
        (BudgetLimits(steps=3), StepsSpent),
        (BudgetLimits(tokens=161), None),
        (BudgetLimits(tokens=160), TokensSpent),
        (BudgetLimits(cost_usd=0.5), CostSpent),
        (BudgetLimits(cost_usd=0.6), None),
        (BudgetLimits(seconds=10.0), TimeSpent),
        (BudgetLimits(seconds=11.0), None),
    ],
)
def test_it_is_empty_when_all_is_spent(
    budget: BudgetLimits, expected: type[Failure] | None
) -> None:
    purse = Budget(began=100.0, steps=3)
    purse.pay(Tokens(200, 50, 10), 0.5)
    purse.pay(Tokens(0, 0, 0), None)

    failure = purse.empty(budget, now=110.0)

    assert (None if failure is None else type(failure)) == expected
    assert failure is None or failure.kind.exit_status == 5
