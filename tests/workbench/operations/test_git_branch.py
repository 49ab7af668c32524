"""A draft's commits become a branch: objects and one ref, whatever the draft's repository says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench import review_branch, take_branch
from holdfast.workbench.failures import (
    DraftMovedOn,
    GitBranchExists,
    GitBranchInvalid,
    GitCommitsMissing,
    GitObjectsRefused,
    GitRepositoryMissing,
)
from holdfast.workbench.model import DraftMode
from tests.workbench.benches import Bench, bench_at, sight
from tests.workbench.repositories import arm, begin, git, tripped

EACH_OBJECT = "for f in $(find .git/objects -type f); do"
COMMIT = "git -c user.name=Agent -c user.email=a@x commit -q"


@pytest.fixture(params=[DraftMode.OVERLAY, DraftMode.COPY])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path / "bench", request.param) as made:
        begin(made.project)
        yield made


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as made:
        begin(made.project)
        yield made


def refs(project: Path) -> str:
    return git(project, "for-each-ref", "--format=%(refname) %(objectname)")


def outside_of_objects(project: Path) -> dict[bytes, object]:
    return {
        path: found
        for path, found in sight(project).items()
        if not path.startswith((b".git/objects", b".git/refs", b".git/logs"))
    }


@pytest.mark.promise("W14")
def test_commits_of_a_draft_become_a_branch(bench: Bench) -> None:
    bench.draft()
    bench.run(
        f"echo new > a; git add a; {COMMIT} -m one; echo x > x; chmod +x x; git add x;"
        f" {COMMIT} -m two; git gc -q --prune=now"
    )
    (bench.project / "theirs").write_text("theirs\n")
    git(bench.project, "add", "theirs")
    git(bench.project, "commit", "-qm", "theirs")
    before, known = outside_of_objects(bench.project), refs(bench.project)

    seen = review_branch(bench.workbench, "agent/work")
    assert refs(bench.project) == known
    taken = take_branch(bench.workbench, "agent/work", tip=seen.tip)

    assert taken == seen
    assert [each.subject for each in seen.commits] == ["two", "one"]
    assert [(each.path, each.added) for each in seen.files] == [(b"a", 1), (b"x", 1)]
    log = git(bench.project, "log", "--format=%an %s", "agent/work").splitlines()
    assert log == ["Agent two", "Agent one", "Ada Person first"]
    assert refs(bench.project) == f"refs/heads/agent/work {seen.tip}\n{known}"
    assert outside_of_objects(bench.project) == before
    git(bench.project, "fsck", "--strict")
    again = take_branch(bench.workbench, "agent/work")
    assert (again.tip, again.is_there) == (seen.tip, True)


@pytest.mark.promise("W13", "W14")
def test_links_modes_and_what_runs_by_itself_are_told(copied: Bench) -> None:
    copied.draft()
    long = "x" * 5000
    copied.run(
        "echo 1 > .envrc; echo 1 > plain; chmod +x a; rm d/b; ln -s /etc d/b; ln -s .. .vscode;"
        f"id=$(printf {long} | git hash-object -w --stdin);"
        f"git add -A; git update-index --add --cacheinfo 120000,$id,long; {COMMIT} -m one"
    )

    found = {
        each.path: [(note.is_loud, note.text) for note in each.notes]
        for each in review_branch(copied.workbench, "work").files
    }

    assert found == {
        b".envrc": [
            (
                True,
                "runs by itself: shells and tool managers run or obey it on entering the directory",
            )
        ],
        b".vscode": [
            (True, "runs by itself: editors run what it names"),
            (True, "link to .. (outside of the project)"),
        ],
        b"a": [(False, "mode 644 to 755")],
        b"d/b": [
            (True, "was a file, becomes a link"),
            (True, "link to /etc (outside of the project)"),
        ],
        b"long": [(False, "link to (5,000 bytes)")],
        b"plain": [],
    }


@pytest.mark.promise("W14")
def test_nothing_runs_in_either_repository(bench: Bench, tmp_path: Path) -> None:
    bench.draft()
    bench.run(f"echo new > a; git add a; {COMMIT} -m one")
    fired = arm(bench.project, tmp_path / "wires")
    wires = tmp_path / "wires"
    # The agent's repository is armed as well.
    bench.run(f"cp {wires}/included .git/config; cp {wires}/hooks/* .git/hooks/")
    for each in fired.iterdir():
        each.unlink()

    taken = take_branch(bench.workbench, "work")

    assert tripped(fired) == set()
    assert (bench.project / ".git" / "refs" / "heads" / "work").read_text() == f"{taken.tip}\n"


@pytest.mark.parametrize("format", ["sha256"])
def test_a_repository_of_another_format(tmp_path: Path, format: str) -> None:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as bench:
        begin(bench.project, format=format)
        git(bench.project, "pack-refs", "--all")
        bench.draft()
        bench.run(f"echo new > a; git add a; {COMMIT} -m one; git pack-refs --all")
        taken = take_branch(bench.workbench, "work")
        assert git(bench.project, "rev-parse", "work").strip() == taken.tip


def test_a_branch_of_the_draft_is_taken_by_its_name(copied: Bench) -> None:
    copied.draft()
    copied.run(
        f"git checkout -q -b feature; echo f > f; git add f; {COMMIT} -m feature;"
        " git checkout -q main"
    )
    with pytest.raises(GitCommitsMissing, match="feature"):
        take_branch(copied.workbench, "other")
    assert [each.subject for each in take_branch(copied.workbench, "feature").commits] == [
        "feature"
    ]


@pytest.mark.promise("W14")
@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("main", GitBranchExists),
        ("main/below", GitBranchExists),
        ("", GitBranchInvalid),
        ("a..b", GitBranchInvalid),
        ("-x", GitBranchInvalid),
        ("HEAD", GitBranchInvalid),
        ("a b", GitBranchInvalid),
        ("x.lock", GitBranchInvalid),
        ("\udcff~", GitBranchInvalid),
    ],
)
def test_names_that_cannot_be_made(copied: Bench, name: str, failure: type[Exception]) -> None:
    copied.draft()
    copied.run(f"echo new > a; git add a; {COMMIT} -m one")
    known = refs(copied.project)
    with pytest.raises(failure):
        take_branch(copied.workbench, name)
    assert refs(copied.project) == known


def test_without_commits_there_is_nothing_to_take(copied: Bench) -> None:
    copied.draft()
    copied.run("echo new > a")
    with pytest.raises(GitCommitsMissing):
        take_branch(copied.workbench, "work")
    with bench_at(copied.base / "none", DraftMode.COPY) as other:
        other.draft()
        with pytest.raises(GitRepositoryMissing):
            take_branch(other.workbench, "work")


def test_commits_that_were_not_reviewed_are_not_taken(copied: Bench) -> None:
    copied.draft()
    copied.run(f"echo new > a; git add a; {COMMIT} -m one")
    tip = review_branch(copied.workbench, "work").tip
    copied.run(f"echo more > a; git add a; {COMMIT} -m two")
    with pytest.raises(DraftMovedOn):
        take_branch(copied.workbench, "work", tip=tip)
    assert "work" not in refs(copied.project)


@pytest.mark.promise("W14")
@pytest.mark.parametrize(
    "harm",
    [
        f"{EACH_OBJECT} rm -f $f; done",
        f"{EACH_OBJECT} rm -f $f; mkfifo $f; done",
        f"{EACH_OBJECT} rm -f $f; ln -s /etc/passwd $f; done",
        f"{EACH_OBJECT} chmod +w $f; echo x > $f; done",
        "mv .git elsewhere; ln -s elsewhere .git",
        "mv .git elsewhere; echo 'gitdir: elsewhere' > .git",
        "mv .git/objects o; mkdir .git/objects; mkdir .git/objects/info;"
        " echo $PWD/o > .git/objects/info/alternates",
        "rm .git/HEAD .git/refs/heads/main; mkdir .git/HEAD",
    ],
)
def test_a_damaged_repository_changes_nothing(copied: Bench, harm: str) -> None:
    copied.draft()
    copied.run(f"echo new > a; git add a; {COMMIT} -m one")
    copied.run(harm)
    known, before = refs(copied.project), outside_of_objects(copied.project)
    with pytest.raises((GitObjectsRefused, GitCommitsMissing)):
        take_branch(copied.workbench, "work")
    assert (refs(copied.project), outside_of_objects(copied.project)) == (known, before)
    git(copied.project, "fsck", "--strict")


@pytest.mark.promise("W14")
def test_trees_that_git_refuses_are_refused(copied: Bench) -> None:
    copied.draft()
    copied.run(
        "blob=$(echo x | git hash-object -w --stdin);"
        ' tree=$(printf "100644 blob $blob\\t.git\\n" | git mktree);'
        " export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a;"
        " git update-ref HEAD $(echo m | git commit-tree $tree -p HEAD)"
    )
    with pytest.raises(GitObjectsRefused):
        take_branch(copied.workbench, "work")
    assert "work" not in refs(copied.project)


@pytest.mark.promise("W14")
def test_commits_in_a_worktree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    (main / "a").write_text("a\n")
    begin(main)
    with bench_at(tmp_path / "bench", DraftMode.OVERLAY) as bench:
        (bench.project / ".git" / "HEAD").unlink()
        (bench.project / ".git").rmdir()
        for each in ("a", "d/b"):
            (bench.project / each).unlink()
        (bench.project / "d").rmdir()
        git(main, "worktree", "add", "-q", "-b", "side", "-f", str(bench.project))
        bench.draft()
        bench.run(f"echo new > a; git add a; {COMMIT} -m one")
        known = refs(main)
        assert git(main, "log", "--format=%s", "side").split() == ["first"]

        taken = take_branch(bench.workbench, "work")

        assert refs(main) == f"{known}refs/heads/work {taken.tip}\n"
        assert git(main, "log", "--format=%s", "work").split() == ["one", "first"]


@pytest.mark.promise("W14")
def test_commits_in_a_submodule_come_along(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "code").write_text("code\n")
    begin(library)
    with bench_at(tmp_path / "bench", DraftMode.OVERLAY) as bench:
        begin(bench.project)
        words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library))
        git(bench.project, *words)
        git(bench.project, "commit", "-qm", "submodule")
        bench.draft()
        bench.run(
            f"cd library; echo x > code; git add code; {COMMIT} -m inner; cd ..;"
            f" git add library; {COMMIT} -m outer"
        )

        taken = take_branch(bench.workbench, "work")

        assert taken.submodules == ("library",)
        inner = git(bench.project, "rev-parse", "work:library").strip()
        assert git(bench.project / "library", "rev-parse", "work").strip() == inner
        assert git(bench.project / "library", "log", "-1", "--format=%s", inner).strip() == "inner"


@pytest.mark.promise("W14")
def test_a_project_that_is_a_submodule(tmp_path: Path) -> None:
    library, above = tmp_path / "library", tmp_path / "above"
    for made in (library, above):
        made.mkdir()
        (made / "code").write_text("code\n")
        begin(made)
    with bench_at(tmp_path / "bench", DraftMode.OVERLAY) as bench:
        words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
        git(above, *words)
        os.rename(bench.project, tmp_path / "unused")
        bench.project.symlink_to(above / "lib")
        bench.draft()
        bench.run(f"echo x > code; git add code; {COMMIT} -m inner")

        taken = take_branch(bench.workbench, "work")

        assert git(above / "lib", "rev-parse", "work").strip() == taken.tip
