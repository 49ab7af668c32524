"""Publishing into git at the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.failures import BranchUnconfirmed, PublishUnconfirmed, UsageWrong
from holdfast.cli.publish_git import require_commit
from holdfast.nouns import RelativePath
from holdfast.workbench import Published
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


def test_the_page_says_how_to_take_it_back(bench: Bench) -> None:
    parent = git(bench.project, "rev-parse", "HEAD")[:12]
    page = bench.asked("publish", "--commit", "--yes").answer
    commit = git(bench.project, "rev-parse", "HEAD")[:12]
    assert f"Commit {commit} on main" in page
    assert f"git reset -q {parent}  (the commit)" in page


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
    done = Published(
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
