"""Each agent that was found stands with the command that starts it."""

from __future__ import annotations

import pytest

from holdfast.agent import load_prices
from holdfast.agent.model import ModelChoice, Tokens
from holdfast.cli.render.agents import (
    DEMO,
    FoundAgent,
    agents_page,
    command_of,
    provider_agent,
    usual_models,
)


def test_a_command_can_be_typed_as_it_stands() -> None:
    codex = FoundAgent(("--runner", "codex"), "Codex is installed")

    assert command_of(codex, "chat") == "holdfast --runner codex"
    assert command_of(codex, "ask") == 'holdfast ask --runner codex "..."'
    assert command_of(DEMO, "chat") == "holdfast --demo"
    assert agents_page(["a", "bcd"], ["one", "two\n"], is_numbered=True) == (
        "  1  a    one\n  2  bcd  two\\n\n"
    )


def test_a_provider_without_a_usual_model_leaves_it_open() -> None:
    assert provider_agent("groq", "").flags == ("--model", "groq/MODEL")
    assert provider_agent("groq", "").needs_model
    assert not provider_agent("openai", "").needs_model
    assert not DEMO.needs_model


@pytest.mark.parametrize("provider", sorted(set(usual_models()) - {"mistral"}))
def test_a_proposed_model_exists(provider: str) -> None:
    choice = ModelChoice(provider, usual_models()[provider])

    assert load_prices().price(choice, Tokens(input=1, output=1)) is not None
