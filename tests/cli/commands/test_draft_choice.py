"""Where several drafts have changes a person is asked which one is meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.failures import DraftAmbiguous
from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        yield made


def changed(bench: Bench, text: str) -> str:
    """A draft in which something was written."""
    made = json.loads(bench.asked("draft", "open", "--mode", "copy", "--json").answer)["id"]
    path = json.loads(bench.asked("draft", "path", "--draft", made, "--json").answer)["path"]
    Path(path, "a").write_text(text)
    return str(made)


@pytest.mark.promise("W13")
def test_where_nobody_can_be_asked_nothing_is_done(bench: Bench) -> None:
    first, second = changed(bench, "1\n"), changed(bench, "2\n")

    for words in (("publish", "--yes"), ("draft", "diff"), ("draft", "undo"), ("draft", "discard")):
        with pytest.raises(DraftAmbiguous) as ambiguous:
            bench.asked(*words, "--json")
        assert ambiguous.value.drafts == (second, first)

    assert bench.files()["a"] == "one\n"


@pytest.mark.promise("W13")
@pytest.mark.parametrize(("is_named", "text"), [(True, "1\n"), (False, "2\n")])
def test_a_person_chooses_one(bench: Bench, is_named: bool, text: str) -> None:
    first, second = changed(bench, "1\n"), changed(bench, "2\n")
    words = ("publish", "--yes", "-C", str(bench.project))
    with on_terminal(*words, home=bench.home) as screen:
        screen.expect("Which draft?")
        screen.type(f"{first}\n" if is_named else "\n")
        status, shown = screen.end()

    assert (status, second in shown) == (0, True)
    assert bench.files()["a"] == text


@pytest.mark.promise("W13")
def test_what_git_ignores_does_not_make_an_older_draft_one_to_choose(bench: Bench) -> None:
    (bench.project / ".gitignore").write_text("cache\n")
    first = changed(bench, "1\n")
    path = json.loads(bench.asked("draft", "path", "--json").answer)["path"]
    Path(path, "cache").write_text("1\n")
    bench.asked("publish", "--yes")
    second = changed(bench, "2\n")

    assert bench.asked("draft", "list").answer.split()[0] == second
    assert json.loads(bench.asked("draft", "diff", "--json").answer)["draft"] == second
    for words in (("publish", "--ignored", "--yes"), ("draft", "discard", "--yes")):
        with pytest.raises(DraftAmbiguous) as ambiguous:
            bench.asked(*words)
        assert ambiguous.value.drafts == (second, first)
    bench.asked("publish", "--yes")
    assert bench.files()["a"] == "2\n"
