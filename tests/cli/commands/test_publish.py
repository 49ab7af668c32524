"""Publishing at the command line: only after a yes, and only what was shown."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.failures import PublishUnconfirmed, UsageWrong
from holdfast.workbench.failures import DraftMerged, HunkMissing, PublishedChanged
from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench, at_bench

LINES = "".join(f"{number}\n" for number in range(1, 21))


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        (made.project / "n").write_text(LINES)
        made.asked("draft", "open", "--mode", "copy")
        yield made


@pytest.fixture
def draft(bench: Bench) -> Path:
    return bench.draft


@pytest.mark.promise("W1")
def test_without_a_yes_nothing_is_published(
    bench: Bench, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (draft / "a").write_text("two\n")
    outcome = bench.asked("publish")
    assert isinstance(outcome.failure, PublishUnconfirmed)
    assert " M a  +1 -1" in capsys.readouterr().err
    with pytest.raises(PublishUnconfirmed):
        bench.asked("publish", "--json")

    assert bench.files()["a"] == "one\n"


@pytest.mark.parametrize(("typed", "content"), [("y\n", "two\n"), ("\n", "one\n")])
def test_a_person_is_shown_it_and_asked(
    bench: Bench, draft: Path, typed: str, content: str
) -> None:
    (draft / "a").write_text("two\n")
    with on_terminal("publish", "-C", str(bench.project), home=bench.home) as screen:
        screen.expect("Publish this? [y/N] ")
        screen.type(typed)
        status, shown = screen.end()

    assert (status, "M a  +1 -1" in shown) == (0 if typed.strip() else 3, True)
    assert bench.files()["a"] == content


def test_what_was_published_can_be_taken_back(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text("two\n")
    done = json.loads(bench.asked("publish", "--yes", "--json").answer)
    assert (done["type"], done["paths"], done["remaining"]) == ("publish", ["a"], 0)
    assert bench.files()["a"] == "two\n"
    bench.asked("restore", done["checkpointBefore"], "--yes")

    assert bench.files()["a"] == "one\n"


def test_some_of_it(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text("two\n")
    (draft / "n").write_text(LINES.replace("2\n", "two\n", 1).replace("19\n", "nineteen\n"))
    page = bench.asked("publish", "--yes", "--hunk", "2:n").answer

    assert "2 more in the draft" in page
    assert bench.files() == {"a": "one\n", "n": LINES.replace("19\n", "nineteen\n")}
    bench.asked("publish", "--yes", "--only", "a")
    assert bench.files()["a"] == "two\n"
    assert bench.files()["n"] == LINES.replace("19\n", "nineteen\n")


@pytest.mark.promise("W5")
def test_conflicts_publish_nothing_unless_forced(bench: Bench, draft: Path) -> None:
    (draft / "a").write_text("ours\n")
    (draft / "b").write_text("new\n")
    bench.asked("draft", "diff", "--stat")
    (bench.project / "a").write_text("theirs\n")
    for words in (("publish",), ("publish", "--yes")):
        outcome = bench.asked(*words)
        assert isinstance(outcome.failure, PublishedChanged)
        assert outcome.failure.paths == ("a",)
        assert "holdfast publish --force PATH" in outcome.hint
    with pytest.raises(PublishedChanged):
        bench.asked("publish", "--yes", "--json")
    assert bench.files() == {"a": "theirs\n", "n": LINES}
    bench.asked("publish", "--yes", "--only", "b")
    assert bench.files() == {"a": "theirs\n", "b": "new\n", "n": LINES}
    bench.asked("publish", "--yes", "--force", "a")
    assert bench.files()["a"] == "ours\n"


@pytest.mark.promise("W1")
def test_what_is_forced_needs_a_yes_as_well(
    bench: Bench, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (draft / "a").write_text("ours\n")
    bench.asked("draft", "diff", "--stat")
    (bench.project / "a").write_text("theirs\n")

    assert isinstance(bench.asked("publish", "--force", "a").failure, PublishUnconfirmed)
    assert (
        "Changed in the project, too; a checkpoint keeps that:\n    a\n" in capsys.readouterr().err
    )
    assert bench.files()["a"] == "theirs\n"


@pytest.mark.promise("W5")
def test_what_can_be_merged_is_reviewed_first(bench: Bench, draft: Path) -> None:
    (draft / "n").write_text(LINES.replace("2\n", "two\n", 1))
    bench.asked("draft", "diff", "--stat")
    (bench.project / "n").write_text(LINES.replace("19\n", "nineteen\n"))
    outcome = bench.asked("publish", "--yes")

    assert isinstance(outcome.failure, DraftMerged)
    assert outcome.hint == "  holdfast draft diff, then holdfast publish"
    both = LINES.replace("2\n", "two\n", 1).replace("19\n", "nineteen\n")
    assert (draft / "n").read_text() == both
    bench.asked("publish", "--yes")
    assert bench.files()["n"] == both


def test_nothing_to_publish_is_no_failure(bench: Bench) -> None:
    assert bench.asked("publish").answer.startswith("✓ Nothing to publish\n")


@pytest.mark.parametrize(
    ("word", "failure"),
    [("n", UsageWrong), ("x:n", UsageWrong), ("2:", UsageWrong), ("9:n", HunkMissing)],
)
def test_a_hunk_is_a_number_and_a_file(
    bench: Bench, draft: Path, word: str, failure: type[Exception]
) -> None:
    (draft / "n").write_text("all new\n")
    with pytest.raises(failure):
        bench.asked("publish", "--yes", "--hunk", word)


HOOK = "#!/bin/sh\ntouch owned\n"


@pytest.fixture
def repository(bench: Bench) -> Path:
    """A `.git` of the project in which the draft has a hook and a configuration."""
    (bench.project / ".git" / "hooks").mkdir(parents=True)
    (bench.project / ".git" / "config").write_text("[core]\n")
    own = bench.draft / ".git"
    (own / "hooks").mkdir(parents=True, exist_ok=True)
    (own / "hooks" / "post-checkout").write_text(HOOK)
    (own / "config").write_text("[core]\n\tfsmonitor = touch owned\n")
    return own


@pytest.mark.promise("W13")
@pytest.mark.parametrize("words", [(), ("--json",), ("--only", ".git")])
def test_a_repository_is_never_published_unasked(
    bench: Bench, repository: Path, words: tuple[str, ...]
) -> None:
    assert repository.is_dir()
    done = bench.ran("publish", "--git", *words)

    assert done.returncode == 3
    assert bench.files()[".git/config"] == "[core]\n"
    assert ".git/hooks/post-checkout" not in bench.files()
    if "--json" in words:
        assert json.loads(done.stdout)["code"] == PublishUnconfirmed.code
        return
    page = done.stderr.decode()
    assert "! Changes in the project's own .git." in page
    assert "! .git/hooks/post-checkout: runs by itself: git runs its hooks" in page
    assert "+touch owned\n" in page and "+\tfsmonitor = touch owned\n" in page
    assert " A .git/hooks/post-checkout  +2 -0" in page


@pytest.mark.promise("W13")
def test_a_repository_is_shown_and_asked_about(bench: Bench, repository: Path) -> None:
    (repository / "hooks" / "evil").write_text("\x1b]0;owned\x07\n")
    with on_terminal("publish", "--git", "-C", str(bench.project), home=bench.home) as screen:
        screen.expect("Publish this? [y/N] ")
        screen.type("n\n")
        status, shown = screen.end()

    assert (status, "fsmonitor = touch owned" in shown, "\x07" in shown) == (3, True, False)
    assert ".git/hooks/post-checkout" not in bench.files()


@pytest.mark.promise("W13")
def test_the_command_that_is_printed_takes_all_of_it_back(bench: Bench, repository: Path) -> None:
    assert repository.is_dir()
    (bench.draft / "a").write_text("two\n")
    before = bench.files()
    done = json.loads(bench.asked("publish", "--git", "--yes", "--json").answer)
    assert bench.files()[".git/hooks/post-checkout"] == HOOK
    assert done["undo"] == f"holdfast restore {done['checkpointBefore']} --git"
    published = bench.files()
    back = json.loads(bench.asked(*done["undo"].split()[1:], "--yes", "--json").answer)
    assert bench.files() == before

    bench.asked(*back["undo"].split()[1:], "--yes")
    assert bench.files() == published


@pytest.mark.promise("W13")
def test_what_is_asked_about_is_what_is_published(
    bench: Bench, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (draft / "new").mkdir()
    (draft / "new" / "f").write_text("1\n")
    (draft / "n").write_text(LINES.replace("2\n", "two\n", 1).replace("19\n", "nineteen\n"))
    bench.asked("publish", "--only", "new/f", "--hunk", "2:n")

    assert capsys.readouterr().err == (
        " M n  +1 -1  +-\n A new  directory\n A new/f  +1 -0  +\n3 paths, +2 -1\n"
    )
    done = json.loads(
        bench.asked("publish", "--only", "new/f", "--hunk", "2:n", "--yes", "--json").answer
    )
    assert done["paths"] == ["n", "new", "new/f"]


@pytest.mark.promise("W13")
def test_it_says_what_no_line_shows(
    bench: Bench, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (draft / "a").write_text("one\ntwo\n")
    (draft / "a").chmod(0o4755)
    (draft / "n").unlink()
    (draft / "n").symlink_to("/etc")
    (draft / ".envrc").write_text("touch owned\n")
    bench.asked("publish")
    page = capsys.readouterr().err

    assert " M a  +1 -0  +\n      ! mode 644 to 4755 SETUID\n" in page
    assert " T n  " in page and "      ! link to /etc (outside of the project)\n" in page
    assert "      ! runs by itself: shells and tool managers" in page


@pytest.mark.promise("W13")
def test_what_git_ignores_is_one_line_and_stays(
    bench: Bench, draft: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (draft / ".gitignore").write_text("__pycache__/\n")
    (draft / "__pycache__").mkdir()
    for number in range(3):
        (draft / "__pycache__" / f"{number}.pyc").write_bytes(b"\0")
    bench.asked("publish")
    folded = (
        " I __pycache__/  4 paths, ignored by git\nNot published unless asked for (--ignored).\n"
    )
    assert capsys.readouterr().err == f" A .gitignore  +1 -0  +\n1 path, +1 -0\n{folded}"
    diff = json.loads(bench.asked("draft", "diff", "--json").answer)
    assert diff["ignored"] == [{"path": "__pycache__", "count": 4}]
    assert bench.asked("draft", "diff", "--stat").hint == folded.rstrip()
    page = bench.asked("publish", "--yes").answer

    assert "  In the draft, ignored by git: 4 paths (--ignored publishes them).\n" in page
    assert "more in the draft" not in page
    assert {*bench.files()} == {".gitignore", "a", "n"}
    nothing = bench.asked("publish")
    assert nothing.answer.startswith("✓ Nothing to publish\n") and folded.rstrip() in nothing.hint
    done = json.loads(bench.asked("publish", "--ignored", "--yes", "--json").answer)
    assert (done["count"], done["ignored"], done["remaining"]) == (4, 0, 0)
    assert "__pycache__/0.pyc" in bench.files()


def test_a_setting_has_it_published_like_all_else(bench: Bench, draft: Path) -> None:
    (bench.home / "config").mkdir()
    (bench.home / "config" / "config.toml").write_text("publish_ignored = true\n")
    (draft / ".gitignore").write_text("x\n")
    (draft / "x").write_text("1\n")
    bench.asked("publish", "--yes")

    assert {*bench.files()} == {".gitignore", "a", "n", "x"}


@pytest.mark.promise("W9")
def test_what_cannot_be_published_is_told_also_where_nobody_is_asked(
    bench: Bench, draft: Path
) -> None:
    os.mkfifo(draft / "fifo")
    (draft / "a").write_text("two\n")
    told = bench.asked("publish", "--yes")
    (draft / "a").write_text("three\n")
    record = json.loads(bench.asked("publish", "--yes", "--json").answer)

    assert told.hint.startswith("! Not published, because Holdfast cannot keep it:\n    fifo  (")
    assert (record["paths"], record["uncovered"]) == (["a"], [{"path": "fifo", "lack": "special"}])


@pytest.mark.promise("W6")
def test_a_yes_beforehand_is_for_what_is_there_however_much_is_written(
    bench: Bench, draft: Path
) -> None:
    script = "while :; do date >> log; done"
    with subprocess.Popen(["/bin/sh", "-c", script], cwd=draft) as writer:
        try:
            published = [bench.asked("publish", "--yes").failure for _ in range(3)]
        finally:
            writer.kill()

    assert published == [None, None, None]
    assert bench.files()["log"]
