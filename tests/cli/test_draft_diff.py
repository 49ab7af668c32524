"""What a draft would change, for whoever reads it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench, at_bench

HOSTILE = "\x1b]0;owned\x07"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\ntwo\n")
        made.asked("draft", "open", "--mode", "copy")
        yield made


@pytest.fixture
def draft(bench: Bench) -> Path:
    return bench.draft


def test_through_a_pipe_it_is_fit_for_patch(bench: Bench, draft: Path, tmp_path: Path) -> None:
    (draft / "a").write_bytes(b"one\n\xff\x1b[31m\n")
    (draft / "new").write_text("new\n")
    done = bench.ran("draft", "diff")
    subprocess.run(["cp", "-a", bench.project, tmp_path / "p"], check=True)
    subprocess.run(
        ["patch", "-p1", "-s", "-d", tmp_path / "p"], input=done.stdout, check=True, timeout=60
    )

    assert (tmp_path / "p/a").read_bytes() == b"one\n\xff\x1b[31m\n"
    assert (tmp_path / "p/new").read_text() == "new\n"


def test_on_a_terminal_nothing_in_it_is_obeyed(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text(f"one\n{HOSTILE}\n")
    (draft / HOSTILE).write_text("x")
    os.symlink(HOSTILE, draft / "link")
    for words in (("draft", "diff"), ("draft", "diff", "--stat"), ("status",)):
        with on_terminal(*words, "-C", str(bench.project), home=bench.home) as screen:
            status, shown = screen.end()
        assert (status, "\x1b" in shown, "\x07" in shown) == (0, False, False)


def test_for_a_program_it_is_exact(bench: Bench, draft: Path) -> None:
    (draft / "a").write_bytes(b"one\n\xff\n")
    record = json.loads(bench.asked("draft", "diff", "--json").answer)

    assert {*record} == {
        "schema",
        "type",
        "draft",
        "seal",
        "withheld",
        "conflicts",
        "merges",
        "uncovered",
        "files",
    }
    (each,) = record["files"]
    assert base64.b64decode(each["diffBase64"]).endswith(b"-two\n+\xff\n")
    stat = json.loads(bench.asked("draft", "diff", "--json", "--stat").answer)
    assert ("diffBase64" in stat["files"][0], stat["seal"]) == (False, record["seal"])


def test_only_some_paths(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text("1\n")
    (draft / "d").mkdir()
    (draft / "d" / "f").write_text("2\n")

    answer = bench.asked("draft", "diff", "--stat", str(bench.project / "d")).answer
    assert answer == " A d  directory\n A d/f  +1 -0  +\n2 paths, +1 -0\n"


@pytest.mark.promise("W5")
def test_conflicts_are_listed_with_what_to_do(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text("one\nours\n")
    bench.asked("draft", "diff", "--stat")
    (bench.project / "a").write_text("one\ntheirs\n")
    outcome = bench.asked("draft", "diff", "--stat")
    record = json.loads(bench.asked("draft", "diff", "--json").answer)

    assert outcome.hint.splitlines()[:2] == [
        "✗ In conflict with the project:",
        "    a  (both changed)",
    ]
    assert record["conflicts"] == [{"path": "a", "reason": "both_changed"}]


def test_a_draft_without_changes_says_so(bench: Bench) -> None:
    assert bench.asked("draft", "diff", "--stat").hint.endswith("changes nothing.")
