"""Drafts at the command line: begun, listed, looked at, rewound, discarded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.failures import DiscardUnconfirmed, UsageWrong
from holdfast.workbench.failures import DraftMissing, RevisionMissing
from tests.cli.workbenches import Bench, at_bench, needs_place


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        yield made


def opened(bench: Bench, mode: str = "copy") -> dict[str, object]:
    found = json.loads(bench.asked("draft", "open", "--mode", mode, "--json").answer)
    assert isinstance(found, dict)
    return found


def where(bench: Bench) -> Path:
    return bench.draft


def test_drafts_are_listed_the_newest_first(bench: Bench) -> None:
    assert bench.asked("draft", "list").hint.startswith("No draft has changes.")
    first, second, _ = opened(bench), opened(bench), opened(bench)
    for each in (first, second):
        path = json.loads(
            bench.asked("draft", "path", "--json", "--draft", str(each["id"])).answer
        )["path"]
        Path(path, "made").write_text("there\n")
    listed = [
        json.loads(line) for line in bench.asked("draft", "list", "--json").answer.splitlines()
    ]

    assert [each["id"] for each in listed] == [second["id"], first["id"]]  # changed ones only
    assert bench.asked("draft", "list").answer.count("copy") == 2


def test_a_copy_is_seen_where_it_is(bench: Bench) -> None:
    draft = opened(bench)

    assert (where(bench) / "a").read_text() == "one\n"
    record = json.loads(bench.asked("draft", "path", "--json").answer)
    assert (record["type"], record["draft"], record["path"]) == (
        "path",
        draft["id"],
        str(where(bench)),
    )


def test_a_path_in_any_bytes_comes_as_it_is(bench: Bench) -> None:
    odd = bench.project / "odd\udcff\x1b[31m"
    odd.mkdir()
    (odd / "a").write_text("one\n")
    bench.ran("draft", "open", "--mode", "copy", "-C", str(odd))
    done = bench.ran("draft", "path", "-C", str(odd))

    assert Path(os.fsdecode(done.stdout.rstrip(b"\n")), "a").read_text() == "one\n"


def test_a_layer_is_seen_through_its_holder(bench: Bench) -> None:
    needs_place(bench)
    assert opened(bench, "auto")["mode"] == "overlay"
    (bench.project / "b").write_text("mine")

    assert sorted(each.name for each in where(bench).iterdir()) == ["a", "b"]


@pytest.mark.promise("W2")
def test_a_draft_goes_back_and_forth(bench: Bench) -> None:
    draft = opened(bench)
    path = where(bench)
    (path / "a").write_text("two\n")
    undone = json.loads(bench.asked("draft", "undo", "--json").answer)

    assert (undone["type"], undone["draft"]) == ("undo", draft["id"])
    assert (path / "a").read_text() == "one\n"
    page = bench.asked("draft", "undo", "--to", "1").answer
    assert ((path / "a").read_text(), "Back to revision 1" in page) == ("two\n", True)


def test_a_revision_that_is_not_there_is_named(bench: Bench) -> None:
    opened(bench)
    with pytest.raises(RevisionMissing):
        bench.asked("draft", "undo", "--to", "9")
    with pytest.raises(UsageWrong):
        bench.asked("draft", "undo", "--to", "x")


@pytest.mark.promise("W1")
def test_a_draft_with_changes_is_discarded_only_after_a_yes(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = opened(bench)
    (where(bench) / "a").write_text("two\n")
    for more in ((), ("--json",)):
        with pytest.raises(DiscardUnconfirmed) as refused:
            bench.asked("draft", "discard", *more)
        assert (refused.value.count, refused.value.draft) == (1, draft["id"])
    assert " M a  +1 -1" in capsys.readouterr().err
    gone = json.loads(bench.asked("draft", "discard", "--yes", "--json").answer)

    assert gone == {"schema": 1, "type": "discarded", "draft": draft["id"]}
    assert bench.asked("draft", "list").answer == ""
    assert bench.files() == {"a": "one\n"}


def test_one_without_changes_is_discarded_at_once(bench: Bench) -> None:
    opened(bench)
    assert bench.asked("draft", "discard").hint.endswith("The project was not touched.")


def test_one_of_several_is_named_by_the_beginning_of_its_id(bench: Bench) -> None:
    first, second = opened(bench), opened(bench)
    bench.asked("draft", "discard", "--draft", str(first["id"]))

    assert json.loads(bench.asked("draft", "path", "--json").answer)["draft"] == second["id"]
    with pytest.raises(DraftMissing):
        bench.asked("draft", "discard", "--draft", str(first["id"]))
