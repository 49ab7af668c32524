"""What a draft would change, for whoever reads it."""

from __future__ import annotations

import base64
import json
import os
import shutil
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


@pytest.mark.promise("W13")
@pytest.mark.parametrize("program", [("patch", "-p1", "-s"), ("git", "apply")])
def test_through_a_pipe_it_is_fit_for_programs(
    bench: Bench, draft: Path, tmp_path: Path, program: tuple[str, ...]
) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]} here")
    (draft / "a").write_bytes(b"one\n\xff\x1b[31m\n")
    (draft / "a").chmod(0o755)
    (draft / "new").write_text("new\n")
    if program[0] == "git":
        (draft / "binary").write_bytes(bytes(range(256)))
        (draft / "link").symlink_to("/etc")
    done = bench.ran("draft", "diff")
    shutil.copytree(bench.project, tmp_path / "p")
    subprocess.run(program, cwd=tmp_path / "p", input=done.stdout, check=True, timeout=60)

    assert (tmp_path / "p/a").read_bytes() == b"one\n\xff\x1b[31m\n"
    assert (tmp_path / "p/new").read_text() == "new\n"
    if program[0] == "git":
        assert (tmp_path / "p/binary").read_bytes() == bytes(range(256))
        assert (tmp_path / "p/link").readlink() == Path("/etc")
        assert (tmp_path / "p/a").stat().st_mode & 0o111


@pytest.mark.promise("W13")
def test_a_repository_is_shown_with_its_content_where_asked_for(bench: Bench, draft: Path) -> None:
    (draft / ".git").mkdir()
    (draft / ".git" / "config").write_text("[core]\n")
    plain, whole = bench.ran("draft", "diff"), bench.ran("draft", "diff", "--git")
    record = json.loads(bench.asked("draft", "diff", "--git", "--json").answer)

    assert plain.stdout == b""
    assert b"Not published unless asked for (--git): .git, 2 paths" in plain.stderr
    assert b"# +[core]\n" in whole.stdout
    marks = {each["path"]: each["runsByItself"] for each in record["files"]}
    assert marks == {".git": None, ".git/config": "git obeys it as configuration"}


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
        "ignored",
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


@pytest.mark.promise("W9")
@pytest.mark.promise("W13")
def test_a_new_fifo_and_a_second_hard_link_are_told(bench: Bench) -> None:
    (bench.project / "one").write_text("1\n")
    os.link(bench.project / "one", bench.project / "other")
    os.mkfifo(bench.project / "old-fifo")
    assert bench.ran("draft", "run", "--", "sh", "-c", "mkfifo fifo; echo 2 >> one").returncode == 0

    told = bench.asked("draft", "diff", "--stat")
    record = json.loads(bench.asked("draft", "diff", "--json").answer)

    assert "2 hard links: its other names keep the old content" in told.answer
    assert "Not published, because Holdfast cannot keep it:\n    fifo  (a fifo," in told.hint
    assert "old-fifo" not in told.hint  # it was there before, and stays as it is
    assert record["uncovered"] == [{"path": "fifo", "lack": "special"}]
