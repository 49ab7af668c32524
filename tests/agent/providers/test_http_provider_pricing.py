"""The list of prices that comes with the program is there and makes sense."""

from __future__ import annotations

import pytest

from holdfast.agent.model import ModelChoice, Tokens
from holdfast.agent.providers.http_provider import load_prices


@pytest.mark.parametrize(
    "choice",
    [
        ModelChoice("openai", "gpt-5-codex"),
        ModelChoice("anthropic", "claude-sonnet-4-5-20250929"),
        ModelChoice("openrouter", "anthropic/claude-sonnet-4.5"),
        ModelChoice("google", "gemini-2.5-pro"),
        ModelChoice("deepseek", "deepseek-chat"),
    ],
    ids=str,
)
def test_what_many_use_is_in_it(choice: ModelChoice) -> None:
    window, price = (
        load_prices().window(choice),
        load_prices().price(choice, Tokens(1000, 500, 100)),
    )

    assert window is None or 10_000 < window < 10**8
    assert price is not None
    assert 0.0 < price < 1.0


def test_what_nobody_knows_is_not_made_up() -> None:
    stranger = ModelChoice("openai", "gpt-nobody-knows")

    assert load_prices().window(stranger) is None
    assert load_prices().price(stranger, Tokens(1, 1, 1)) is None


def test_it_is_read_once() -> None:
    assert load_prices() is load_prices()
