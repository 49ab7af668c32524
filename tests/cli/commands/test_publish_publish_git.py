"""Publishing into git at the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.commands.publish import require_commit
from holdfast.cli.failures import BranchUnconfirmed, PublishUnconfirmed, UsageWrong
from holdfast.nouns import RelativePath
from holdfast.workbench import PublishResult
from holdfast.workbench.failures import GitCommitNotMade
from holdfast.workbench.model import Committed
from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench, at_bench
from tests.workbench.repositories import arm, begin, git, tripped

COMMIT = ("-c", "user.name=Agent", "-c", "user.email=a@x", "commit", "-q")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with at_bench() as made:
        (made.project / "a").write_text("one\n")
        begin(made.project)
        made.asked("draft", "open", "--mode", "copy")
        (made.draft / "a").write_text("two\n")
        yield made


@pytest.mark.promise("W14")
def test_a_commit_is_made_and_told(bench: Bench) -> None:
    head = git(bench.project, "rev-parse", "HEAD").strip()
    with pytest.raises(PublishUnconfirmed):
        bench.asked("publish", "--commit", "--json")
    assert git(bench.project, "rev-parse", "HEAD").strip() == head

    done = json.loads(bench.asked("publish", "--commit", "-m", "Two", "--yes", "--json").answer)

    assert done["commit"] == git(bench.project, "rev-parse", "HEAD").strip()
    assert (done["branch"], done["notInCommit"], done["committedWhole"]) == ("main", [], [])
    assert git(bench.project, "log", "--format=%s").split() == ["Two", "first"]
    assert git(bench.project, "status", "--porcelain") == ""


def printed_undo(page: str) -> str:
    """The command for git that a page says takes the commit back."""
    (line,) = [line.strip() for line in page.splitlines() if line.startswith("    git ")]
    return line


def typed(bench: Bench, line: str) -> int:
    return subprocess.run(["/bin/sh", "-c", line], cwd=bench.project, check=False).returncode


@pytest.mark.promise("W14")
def test_the_printed_commands_take_all_of_it_back_and_nothing_else(bench: Bench) -> None:
    (bench.project / "mine").write_text("staged\n")
    git(bench.project, "add", "mine")
    (bench.project / "mine").write_text("newer\n")
    (bench.draft / "new").write_text("new\n")
    before = git(bench.project, "rev-parse", "HEAD"), git(bench.project, "ls-files", "--stage")

    page = bench.asked("publish", "--commit", "--yes", "--only", "a", "new").answer

    assert f"Commit {git(bench.project, 'rev-parse', 'HEAD')[:12]} on main" in page
    undo = next(line for line in page.splitlines() if "holdfast restore" in line).split()[1:]
    bench.asked(*undo, "--yes")
    assert typed(bench, printed_undo(page)) == 0
    after = git(bench.project, "rev-parse", "HEAD"), git(bench.project, "ls-files", "--stage")
    assert after == before
    assert git(bench.project, "status", "--porcelain") == "AM mine\n"


@pytest.mark.promise("W14")
def test_the_printed_command_takes_no_later_commit_back(bench: Bench) -> None:
    done = json.loads(bench.asked("publish", "--commit", "--yes", "--json").answer)
    git(bench.project, *COMMIT, "--allow-empty", "-m", "later")
    head = git(bench.project, "rev-parse", "HEAD")

    assert typed(bench, done["undoCommit"]) != 0

    assert git(bench.project, "rev-parse", "HEAD") == head


@pytest.mark.promise("W14")
def test_the_first_commit_of_a_branch_can_be_taken_back(bench: Bench) -> None:
    git(bench.project, "checkout", "-q", "--orphan", "fresh")
    git(bench.project, "rm", "-q", "--cached", "a")
    page = bench.asked("publish", "--commit", "--yes").answer
    assert git(bench.project, "log", "--format=%s", "fresh") == "Publish a\n"

    assert typed(bench, printed_undo(page)) == 0

    assert git(bench.project, "branch", "--list", "fresh") == ""
    assert git(bench.project, "ls-files") == ""


@pytest.mark.promise("W14")
def test_nothing_of_the_persons_own_configuration_runs(bench: Bench, tmp_path: Path) -> None:
    git(bench.draft, "add", "a")
    git(bench.draft, *COMMIT, "-m", "agent")
    fired = arm(bench.project, tmp_path / "wires")
    person = tmp_path / "person"
    person.mkdir()
    (person / ".gitconfig").write_text((tmp_path / "wires" / "included").read_text())
    for each in fired.iterdir():
        each.unlink()
    env = {"HOME": str(person)}
    taken = bench.ran("publish", "--branch", "work", "--yes", **env)
    published = bench.ran("publish", "--commit", "--yes", **env)
    assert (taken.returncode, published.returncode) == (0, 0), (taken, published)
    assert tripped(fired) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "x"),
        ("--commit", "-m", " "),
        ("--commit", "--git"),
        ("--branch", "x", "--commit"),
        ("--branch", "x", "--only", "a"),
        ("--branch", "x", "--git"),
    ],
)
def test_what_does_not_go_together_is_refused(bench: Bench, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageWrong):
        bench.asked("publish", "--yes", *words)
    assert bench.files()["a"] == "one\n"


@pytest.mark.promise("W14")
@pytest.mark.parametrize("typed", ["y\n", "\n"])
def test_commits_are_shown_before_they_are_taken(bench: Bench, typed: str) -> None:
    git(bench.draft, "add", "a")
    git(bench.draft, *COMMIT, "-m", "agent's own")
    with pytest.raises(BranchUnconfirmed):
        bench.asked("publish", "--branch", "work", "--json")
    with on_terminal(
        "publish", "--branch", "work", "-C", str(bench.project), home=bench.home
    ) as screen:
        screen.expect("Take these commits? [y/N] ")
        screen.type(typed)
        status, shown = screen.end()
    assert "agent's own" in shown
    is_taken = "work" in git(bench.project, "branch", "--list")
    assert (is_taken, status) == ((True, 0) if typed.strip() else (False, 3))
    assert bench.files()["a"] == "one\n"
    if is_taken:
        again = json.loads(bench.asked("publish", "--branch", "work", "--json").answer)
        assert (again["type"], again["wasThere"]) == ("branch", True)


def test_a_commit_that_was_not_made_is_a_failure_that_says_what_to_do() -> None:
    done = PublishResult(
        key="k",
        draft="draft_1",
        checkpoint="cp_1",
        paths=(RelativePath.of("a"),),
        count=1,
        remaining=0,
        commit=Committed(id="0" * 40, branch="main", problem="main moved meanwhile"),
    )
    with pytest.raises(GitCommitNotMade) as raised:
        require_commit(done)
    assert "holdfast restore cp_1" in raised.value.user_message
