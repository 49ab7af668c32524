"""Settings of a project count after a person has agreed to them, and no longer than that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.app.failures import ConfigKeyRefused, TrustUnconfirmed
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        yield made


def steps(bench: Bench) -> object:
    record = json.loads(bench.asked("config", "show", "--json").answer)
    return record["settings"]["budget.steps"]["value"]


def test_what_is_agreed_to_counts_until_it_changes(bench: Bench) -> None:
    file = bench.project / ".holdfast.toml"
    assert bench.asked("trust").hint == "There is no .holdfast.toml here, nor above."
    file.write_text("[budget]\nsteps = 7  # \u202e\n")
    unasked = bench.ran("trust")

    assert (unasked.returncode, steps(bench)) == (3, None)
    assert TrustUnconfirmed.code.encode() in unasked.stderr
    assert "does not count" in bench.asked("config", "show").hint
    agreed = bench.ran("trust", "--yes")
    assert b"steps = 7  # \\u202e\n" in agreed.stderr
    assert steps(bench) == 7
    assert bench.asked("trust").hint.endswith("is trusted already.")
    file.write_text("[budget]\nsteps = 8\n")
    assert steps(bench) is None


def test_what_only_a_user_may_settle_is_not_even_offered(bench: Bench) -> None:
    (bench.project / ".holdfast.toml").write_text('runner = "native"\n')

    with pytest.raises(ConfigKeyRefused):
        bench.asked("trust", "--yes")
