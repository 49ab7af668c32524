"""Resolving conflicts at the command line."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

import pytest

from holdfast.cli.failures import UsageWrong
from holdfast.workbench.failures import PathMissing
from tests.cli.workbenches import Bench, at_bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        made.asked("draft", "open", "--mode", "copy")
        (made.draft / "a").write_text("ours\n")
        (made.project / "a").write_text("theirs\n")
        yield made


@pytest.mark.promise("W5")
def test_the_advice_of_a_conflict_can_be_followed(bench: Bench) -> None:
    refused = bench.asked("publish", "--yes")
    assert refused.failure is not None
    assert "holdfast draft merge PATH" in refused.hint
    assert 'holdfast ask --draft ID "..."' in refused.hint

    page = bench.asked("draft", "merge", "a").answer
    assert "conflict markers" in page
    assert "<<<<<<< draft" in (bench.draft / "a").read_text()
    (bench.draft / "a").write_text("both\n")
    bench.asked("publish", "--yes")

    assert bench.files() == {"a": "both\n"}


def test_one_side_for_a_program(bench: Bench) -> None:
    done = json.loads(bench.asked("draft", "merge", "--theirs", "--json").answer)
    assert (done["type"], done["taken"]) == ("merge", ["a"])
    with pytest.raises(UsageWrong):
        bench.asked("draft", "merge", "--theirs", "--ours")


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("words", "content"), [((), b"ours\n"), (("--project",), b"theirs\n"), (("--base",), b"one\n")]
)
def test_versions_are_printed(bench: Bench, words: tuple[str, ...], content: bytes) -> None:
    done = bench.ran("draft", "show", *words, "a")
    assert (done.returncode, done.stdout) == (0, content)
    told = json.loads(bench.ran("draft", "show", *words, "a", "--json").stdout)
    assert b64decode(told["contentBase64"]) == content
    elsewhere = bench.ran("draft", "show", *words, "-C", str(bench.project), "a")
    assert elsewhere.stdout == content


def test_what_cannot_be_shown_is_named(bench: Bench) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("draft", "show")
    with pytest.raises(UsageWrong):
        bench.asked("draft", "show", "--base", "--project", "a")
    assert json.loads(bench.ran("draft", "show", "b", "--json").stdout)["code"] == PathMissing.code
