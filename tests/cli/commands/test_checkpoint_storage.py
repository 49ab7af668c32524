"""Room at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.cli.failures import UsageWrong
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        for number in range(3):
            (made.project / "a").write_text(f"{number}\n" * 10_000)
            made.asked("checkpoint", "create")
        yield made


def test_how_much_room_is_used(bench: Bench) -> None:
    found = json.loads(bench.asked("storage", "--json").answer)

    assert (found["type"], found["checkpoints"]) == ("storage", 3)
    assert found["bytes"] > 0
    assert bench.asked("storage").answer.splitlines()[0].endswith(" in 3 checkpoints")


@pytest.mark.promise("W11")
def test_what_is_too_much_goes_and_a_trial_takes_nothing(bench: Bench) -> None:
    words = ("storage", "--prune", "--manual", "--quota", "1k", "--json")
    trial = json.loads(bench.asked(*words, "--dry-run").answer)
    assert len(bench.asked("checkpoint", "list", "--json").answer.splitlines()) == 3
    done = json.loads(bench.asked(*words).answer)

    assert (trial["dryRun"], done["dryRun"]) == (True, False)
    assert trial["checkpoints"] == done["checkpoints"]
    left = bench.asked("checkpoint", "list", "--json").answer.splitlines()
    assert len(left) == 3 - len(done["checkpoints"]) >= 1


@pytest.mark.promise("W11")
def test_manual_checkpoints_stay_and_a_missed_quota_is_said(bench: Bench) -> None:
    words = ("storage", "--prune", "--quota", "1k")
    done = json.loads(bench.asked(*words, "--json").answer)
    page = bench.asked(*words).answer

    assert (done["checkpoints"], done["manualKept"], done["quotaBytes"]) == ([], 3, 1024)
    assert len(bench.asked("checkpoint", "list", "--json").answer.splitlines()) == 3
    assert "Still above 1.0 KiB" in page
    assert "3 manual checkpoints stayed; add --manual" in page


@pytest.mark.parametrize(
    "words",
    [("--quota", "1k"), ("--dry-run",), ("--manual",), ("--prune", "--quota", "much")],
)
def test_what_has_no_meaning_is_refused(bench: Bench, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("storage", *words)
