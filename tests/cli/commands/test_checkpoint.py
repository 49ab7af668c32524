"""Checkpoints at the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from holdfast.cli.failures import UsageWrong
from holdfast.workbench.failures import CheckpointMissing
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        yield made


def created(bench: Bench, *words: str) -> dict[str, object]:
    found = json.loads(bench.asked("checkpoint", "create", "--json", *words).answer)
    assert isinstance(found, dict)
    return found


def test_a_checkpoint_is_made_and_listed(bench: Bench) -> None:
    assert bench.asked("checkpoint", "list").hint.startswith("No checkpoints yet.")
    made = created(bench, "-m", "first")
    page = bench.asked("checkpoint", "create").answer
    listed = [
        json.loads(line) for line in bench.asked("checkpoint", "list", "--json").answer.splitlines()
    ]

    assert (made["message"], made["occasion"], made["files"]) == ("first", "manual", 1)
    assert [each["id"] for each in listed] == [page.split()[1], made["id"]]
    assert listed[1] == made
    assert str(made["id"]) in bench.asked("checkpoint", "list").answer


def test_those_made_by_themselves_are_left_out(bench: Bench) -> None:
    created(bench)
    (bench.project / "a").write_text("two\n")
    bench.asked("draft", "open", "--mode", "copy")
    bench.asked("draft", "diff", "--stat")

    kept = bench.asked("checkpoint", "list", "--json").answer.splitlines()
    every = bench.asked("checkpoint", "list", "--json", "--all").answer.splitlines()
    assert (len(kept), len(every) > 1) == (1, True)


@pytest.mark.promise("W9")
def test_what_is_not_covered_is_shown_with_the_reason(bench: Bench) -> None:
    os.mkfifo(bench.project / "fifo\x07")
    made = created(bench)

    shown = json.loads(bench.asked("checkpoint", "show", str(made["id"]), "--json").answer)
    assert shown == {**made, "uncovered": [{"path": "fifo\\x07", "lack": "special"}]}
    page = bench.asked("checkpoint", "show", str(made["id"])[:-3]).answer
    assert "    fifo\\x07  (a fifo, a socket or a device)\n" in page


def test_two_are_compared(bench: Bench) -> None:
    first = str(created(bench)["id"])
    (bench.project / "a").write_text("two\n")
    (bench.project / "b").write_text("new\n")
    second = str(created(bench)["id"])

    for after in (second, "now"):
        compared = json.loads(
            bench.asked("checkpoint", "diff", first, after, "--stat", "--json").answer
        )
        assert [(each["path"], each["deed"]) for each in compared["files"]] == [
            ("a", "changed"),
            ("b", "added"),
        ]
    since = bench.asked("checkpoint", "diff", first, "now", "--json").answer
    assert bench.asked("checkpoint", "diff", first, "--json").answer == since
    one = json.loads(bench.asked("checkpoint", "diff", first, "b", "--json").answer)
    assert (one["after"], [each["path"] for each in one["files"]]) == ("now", ["b"])
    assert bench.asked("checkpoint", "diff", first, "now", "--stat", "b").answer == (
        " A b  +1 -0  +\n1 path, +1 -0\n"
    )


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        (("checkpoint", "show"), UsageWrong),
        (("checkpoint", "diff"), UsageWrong),
        (("checkpoint", "diff", "cp_1"), CheckpointMissing),
        (("checkpoint", "show", "cp_nope"), CheckpointMissing),
        (("checkpoint", "diff", "cp_nope", "now"), CheckpointMissing),
    ],
)
def test_what_is_not_there_is_named(
    bench: Bench, words: tuple[str, ...], failure: type[Exception]
) -> None:
    created(bench)
    with pytest.raises(failure):
        bench.asked(*words)
