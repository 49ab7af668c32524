"""The last choice of an agent is kept, and sample projects are known by their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.agent import load_prices
from holdfast.agent.model import ModelChoice, Tokens
from holdfast.app.wiring.agent_choice import (
    DEMO,
    USUAL_MODELS,
    AgentChoices,
    ChosenAgent,
    FoundAgent,
    provider_agent,
)
from holdfast.runners import write_sample


def test_the_last_choice_is_kept(tmp_path: Path) -> None:
    choices, state = AgentChoices(tmp_path / "state"), tmp_path / "state"
    assert choices.last() is None

    assert choices.remember(ChosenAgent("codex"))
    assert choices.remember(ChosenAgent("native", "openai/x"))
    assert not choices.remember(ChosenAgent("native", "openai/x"))
    assert AgentChoices(state).last() == ChosenAgent("native", "openai/x")
    assert (state / "agent.json").stat().st_mode & 0o777 == 0o600


def test_a_sample_is_known_with_all_that_is_in_it(tmp_path: Path) -> None:
    choices, real = AgentChoices(tmp_path / "state"), tmp_path.resolve() / "real"
    (real / "inner").mkdir(parents=True)
    write_sample(real)
    (tmp_path / "link").symlink_to(real)
    choices.add_sample(tmp_path / "link")
    choices.remember(ChosenAgent("codex"))

    assert choices.sample_at(real) == real
    assert choices.sample_at(tmp_path / "link" / "inner") == real
    assert choices.sample_at(tmp_path) is None
    assert choices.sample_at(tmp_path / "real2") is None


@pytest.mark.promise("S1")
@pytest.mark.parametrize("readme", [None, b"# Mine\n", b"\xff"])
def test_another_project_in_the_place_of_a_sample_is_not_one(
    tmp_path: Path, readme: bytes | None
) -> None:
    choices, place = AgentChoices(tmp_path / "state"), tmp_path.resolve() / "basket"
    write_sample(place)
    choices.add_sample(place)
    assert choices.sample_at(place) == place

    shutil.rmtree(place)
    place.mkdir()
    (place / "basket.py").touch()
    if readme is not None:
        (place / "README.md").write_bytes(readme)
    assert choices.sample_at(place) is None


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"\xff", b'{"chosen": 3}'])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "agent.json").write_bytes(damaged)
    choices = AgentChoices(tmp_path)

    assert choices.last() is None
    assert choices.sample_at(tmp_path) is None
    assert choices.remember(ChosenAgent("codex"))
    assert choices.last() == ChosenAgent("codex")


def test_a_provider_without_a_usual_model_has_the_placeholder() -> None:
    groq = provider_agent("groq", "why")

    assert groq == FoundAgent("native", "why", model="groq/MODEL")
    assert groq.needs_model
    assert not provider_agent("openai", "").needs_model
    assert not DEMO.needs_model


@pytest.mark.parametrize("provider", sorted(set(USUAL_MODELS) - {"mistral"}))
def test_a_proposed_model_exists(provider: str) -> None:
    choice = ModelChoice(provider, USUAL_MODELS[provider])

    assert load_prices().price(choice, Tokens(input=1, output=1)) is not None
