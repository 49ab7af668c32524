"""Where a project stands, at any time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        yield made


def status(bench: Bench) -> dict[str, object]:
    found = json.loads(bench.asked("status", "--json").answer)
    assert isinstance(found, dict)
    return found


def test_a_project_that_nobody_worked_on(bench: Bench) -> None:
    found = status(bench)

    assert (found["project"], found["drafts"], found["checkpoints"]) == (str(bench.project), [], 0)
    assert not (bench.home / "state").exists()


@pytest.mark.promise("R13")
def test_drafts_conflicts_and_what_went_wrong(bench: Bench) -> None:
    bench.asked("draft", "open", "--mode", "copy")
    draft = bench.draft
    (draft / "a").write_text("ours\n")
    bench.asked("checkpoint", "create")
    (bench.project / "a").write_text("theirs\n")
    bench.asked("publish", "--yes")
    found = status(bench)

    assert isinstance(found["drafts"], list)
    assert [(each["changed"], each["conflicts"]) for each in found["drafts"]] == [(1, ["a"])]
    assert isinstance(found["lastFailure"], dict)
    assert found["lastFailure"]["deed"] == "publish"
    assert found["lastFailure"]["error"]["code"] == "CONFLICT_PUBLISHED_CHANGED"
    page = bench.asked("status").answer
    assert "in conflict with the project:\n    a\n" in page
    assert "The project changed meanwhile" in page
    bench.asked("publish", "--yes", "--force", "a")
    assert status(bench)["lastFailure"] is None


def test_where_nothing_was_interrupted_nothing_is_recovered(bench: Bench) -> None:
    bench.asked("checkpoint", "create")

    assert bench.asked("recover").hint == "Nothing was interrupted."
    assert json.loads(bench.asked("recover", "--json").answer) == {
        "schema": 1,
        "type": "recovery",
        "recovered": [],
    }
