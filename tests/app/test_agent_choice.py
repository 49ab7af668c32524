"""The last choice of an agent is kept, and sample projects are known by their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.agent_choice import AgentChoices, ChosenAgent


def test_the_last_choice_is_kept(tmp_path: Path) -> None:
    choices, state = AgentChoices(tmp_path / "state"), tmp_path / "state"
    assert choices.last() is None

    assert choices.remember(ChosenAgent("codex"))
    assert choices.remember(ChosenAgent("native", "openai/x"))
    assert not choices.remember(ChosenAgent("native", "openai/x"))
    assert AgentChoices(state).last() == ChosenAgent("native", "openai/x")
    assert (state / "agent.json").stat().st_mode & 0o777 == 0o600


def test_a_sample_is_known_with_all_that_is_in_it(tmp_path: Path) -> None:
    choices = AgentChoices(tmp_path / "state")
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    choices.add_sample(tmp_path / "link")
    choices.remember(ChosenAgent("codex"))

    assert choices.is_sample(tmp_path / "real")
    assert choices.is_sample(tmp_path / "link" / "inner")
    assert not choices.is_sample(tmp_path)
    assert not choices.is_sample(tmp_path / "real2")


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"\xff", b'{"chosen": 3}'])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "agent.json").write_bytes(damaged)
    choices = AgentChoices(tmp_path)

    assert choices.last() is None
    assert not choices.is_sample(tmp_path)
    assert choices.remember(ChosenAgent("codex"))
    assert choices.last() == ChosenAgent("codex")
