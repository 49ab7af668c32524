"""Restoring at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.cli.failures import UsageWrong
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "d").mkdir()
        (made.project / "a").write_text("one\n")
        (made.project / "d" / "b").write_text("one\n")
        yield made


@pytest.fixture
def first(bench: Bench) -> str:
    made = json.loads(bench.asked("checkpoint", "create", "--json").answer)["id"]
    for name in ("a", "d/b"):
        (bench.project / name).write_text("two\n")
    return str(made)


@pytest.mark.promise("W3")
def test_a_restore_can_be_restored_from(bench: Bench, first: str) -> None:
    done = json.loads(bench.asked("restore", first, "--json").answer)
    assert bench.files() == {"a": "one\n", "d/b": "one\n"}
    assert (done["type"], done["paths"], done["restored"]) == ("restore", ["a", "d/b"], first)
    page = bench.asked("restore", done["checkpointBefore"]).answer

    assert bench.files() == {"a": "two\n", "d/b": "two\n"}
    assert page.splitlines()[0] == "✓ Restored 2 paths"


def test_only_some_paths_are(bench: Bench, first: str) -> None:
    bench.asked("restore", first, "--only", "d")
    assert bench.files() == {"a": "two\n", "d/b": "one\n"}


def test_what_is_as_it_was_is_left_alone(bench: Bench, first: str) -> None:
    bench.asked("restore", first)
    assert bench.asked("restore", first).answer.startswith("✓ Nothing to restore\n")


def test_a_checkpoint_must_be_named(bench: Bench) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("restore")
