"""What a list of prices says, and that it says nothing about what it does not know."""

from __future__ import annotations

import pytest

from holdfast.agent.model import ModelChoice, Tokens
from holdfast.agent.providers.registry import Priced, PriceList, Prices, Rates, read_prices

LIST = PriceList(
    "somebody",
    {
        "there": (
            Priced((Rates(0, 2.0, 0.5, 8.0),), window=1000, equals=("one",)),
            Priced((Rates(0, 2.0, None, 8.0), Rates(500, 4.0, 1.0, 16.0)), starts=("two-",)),
            Priced((Rates(0, 1.0, None, 1.0),), ends=("-three",), contains=("three.",)),
            Priced((Rates(0, 1.0, None, 1.0),), matches=("^four-[0-9]+$",)),
        )
    },
)


@pytest.mark.parametrize(
    ("model", "tokens", "expected"),
    [
        ("one", (1_000_000, 0, 0), 2.0),
        ("ONE", (1_000_000, 400_000, 1_000_000), 1.2 + 0.2 + 8.0),
        ("one", (1_000_000, 200_000, 0, 800_000), 0.1 + 0.8 * 1.25 * 2.0),
        ("two-a", (500, 100, 0), 0.001),
        ("two-a", (501, 0, 0), 501 * 4.0 / 1e6),
        ("a-three", (0, 0, 1_000_000), 1.0),
        ("three.5", (0, 0, 0), 0.0),
        ("four-7", (10, 20, 0), 20 / 1e6),
        ("four-x", (1, 1, 1), None),
        ("five", (1, 1, 1), None),
    ],
)
def test_what_it_costs(model: str, tokens: tuple[int, ...], expected: float | None) -> None:
    found = Prices(LIST).price(ModelChoice("there", model), Tokens(*tokens))

    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ModelChoice("there", "one"), 1000),
        (ModelChoice("there", "two-a"), None),
        (ModelChoice("there", "five"), None),
        (ModelChoice("elsewhere", "one"), None),
    ],
)
def test_how_much_fits(choice: ModelChoice, expected: int | None) -> None:
    assert Prices(LIST).window(choice) == expected


def test_the_list_is_read() -> None:
    text = b'{"source": "x", "providers": {"p": [{"equals": ["m"], "rates": [[0, 1, null, 2]]}]}}'

    assert read_prices(text).price(ModelChoice("p", "m"), Tokens(1_000_000)) == 1.0
