"""A commit of what is published: by plumbing, nothing of the repository runs, the index is kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench import CommitOrder, PublishOrder, PublishResult, Workbench, publish, recover
from holdfast.workbench.failures import (
    GitIdentityMissing,
    GitRepositoryMissing,
    GitRepositoryRefused,
)
from holdfast.workbench.model import DraftMode, EntryKind, PathChange, PathEntry
from holdfast.workbench.operations.git_commit import finish_commit, prepare_commit
from tests.workbench.benches import (
    COMMITTED,
    LINES,
    PREPARED,
    Bench,
    at,
    bench_at,
    disturbed,
    killed,
)
from tests.workbench.repositories import arm, begin, git, identify, tripped


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as made:
        begin(made.project)
        yield made


def committed(
    bench: Bench, message: str | None = "Agent's work", *, workbench: Workbench | None = None
) -> PublishResult:
    order = PublishOrder(commit=CommitOrder(message=message))
    return publish(workbench or bench.workbench, order)


def tree(project: Path, commit: str = "HEAD") -> dict[str, str]:
    """Of each path in a commit its mode and content."""
    listing = git(project, "ls-tree", "-r", "-z", commit)
    found: dict[str, str] = {}
    for item in filter(None, listing.split("\0")):
        head, _, path = item.partition("\t")
        mode, kind, object = head.split()
        content = git(project, "cat-file", kind, object) if kind == "blob" else object
        found[path] = f"{mode} {content}"
    return found


def changed(project: Path) -> list[str]:
    return git(project, "status", "--porcelain=v1", "-z").split("\0")[:-1]


@pytest.mark.promise("W14")
@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_a_commit_holds_exactly_what_is_published(
    tmp_path: Path, mode: DraftMode, format: str
) -> None:
    with bench_at(tmp_path / "bench", mode) as bench:
        (bench.project / "gone").write_text("gone\n")
        (bench.project / "was_dir").mkdir()
        (bench.project / "was_dir" / "f").write_text("f\n")
        (bench.project / "script").write_text("#!/bin/sh\n")
        begin(bench.project, format=format)
        git(bench.project, "pack-refs", "--all")
        (bench.project / "untracked").write_text("mine\n")
        bench.draft()
        bench.run(
            "echo new > a; rm gone; rm -r was_dir; echo now > was_dir; chmod +x script;"
            " mkdir -p e/empty e/g; ln -s ../a e/l; echo x > e/g/x; chmod 755 e/g/x;"
            " printf y > \"$(printf 'n\\377\\n\\tm')\""
        )
        first = git(bench.project, "rev-parse", "HEAD").strip()

        done = committed(bench)

        assert done.commit is not None
        assert (done.commit.branch, done.commit.problem) == ("main", "")
        assert done.commit.id == git(bench.project, "rev-parse", "main").strip()
        assert git(bench.project, "log", "--format=%H %an <%ae>|%cn|%B", "-1").strip() == (
            f"{done.commit.id} Ada Person <ada@example.org>|Ada Person|Agent's work"
        )
        assert git(bench.project, "rev-parse", "HEAD^").strip() == first
        assert tree(bench.project) == {
            "a": "100644 new\n",
            "d/b": "100644 b\n",
            "e/g/x": "100755 x\n",
            "e/l": "120000 ../a",
            os.fsdecode(b"n\xff\n\tm"): "100644 y",
            "script": "100755 #!/bin/sh\n",
            "was_dir": "100644 now\n",
        }
        assert changed(bench.project) == ["?? untracked"]
        git(bench.project, "fsck", "--strict")


@pytest.mark.promise("W14")
@pytest.mark.parametrize("mode", [DraftMode.OVERLAY, DraftMode.COPY])
def test_nothing_of_an_armed_repository_runs(tmp_path: Path, mode: DraftMode) -> None:
    with bench_at(tmp_path / "bench", mode) as bench:
        (bench.project / "staged").write_text("one\n")
        (bench.project / ".gitattributes").write_text("* filter=wire diff=wire\n")
        begin(bench.project)
        git(bench.project, "branch", "other")
        git(bench.project, "tag", "v1")
        (bench.project / "staged").write_text("two\n")
        git(bench.project, "add", "staged")
        bench.draft()
        bench.run("echo new > a; echo b > new")
        fired = arm(bench.project, tmp_path / "wires")
        index = git(bench.project, "ls-files", "--stage", "staged", GIT_CONFIG_NOSYSTEM="1")
        refs = (bench.project / ".git" / "refs" / "heads" / "other").read_bytes()
        for each in fired.iterdir():
            each.unlink()  # what the lines above have run

        done = committed(bench)

        assert tripped(fired) == set()
        assert done.commit is not None and done.commit.id and not done.commit.problem
        raw = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "cat-file", "-p", done.commit.id],
            cwd=bench.project,
            capture_output=True,
            check=True,
        ).stdout
        assert b"gpgsig" not in raw and b"encoding" not in raw
        assert (bench.project / ".git" / "refs" / "heads" / "other").read_bytes() == refs
        names = {each.name for each in (bench.project / ".git").iterdir()}
        assert not names & {"index.lock", "HEAD.lock"}
        assert git(bench.project, "ls-files", "--stage", "staged") == index

        # The wires are live: git itself trips over them.
        (bench.project / "staged").write_text("three\n")
        for words in (("update-ref", "refs/heads/live", "HEAD"), ("add", "staged"), ("status",)):
            subprocess.run(["git", *words], cwd=bench.project, capture_output=True, check=False)
        assert {"hook-reference-transaction", "process", "fsmonitor"} <= tripped(fired)


@pytest.mark.promise("W14")
def test_what_the_person_has_staged_stays_staged(bench: Bench) -> None:
    project = bench.project
    (project / "a").write_bytes(LINES.replace(b"1\n", b"one\n"))
    (project / "mine").write_text("mine\n")
    git(project, "add", "a", "mine")
    (project / "d" / "b").write_text("unstaged\n")
    bench.draft()
    bench.run("sed -i s/9/nine/ a; echo new > new")
    staged = git(project, "ls-files", "--stage", "a", "mine", "d/b")

    done = committed(bench)

    assert git(project, "ls-files", "--stage", "a", "mine", "d/b") == staged
    assert sorted(changed(project)) == [" M d/b", "A  mine", "MM a"]
    # Of `a` only what was published is committed: the person's own change of it is not.
    assert tree(project)["a"] == "100644 " + LINES.replace(b"9", b"nine").decode()
    assert tree(project)["new"] == "100644 new\n"
    assert "mine" not in tree(project) and tree(project)["d/b"] == "100644 b\n"
    assert done.commit is not None and done.commit.whole == ()
    git(project, "commit", "-qm", "theirs")
    assert tree(project)["new"] == "100644 new\n"


def test_changes_in_the_same_lines_are_committed_together_and_named(bench: Bench) -> None:
    (bench.project / "a").write_bytes(LINES.replace(b"1\n", b"one\n"))
    (bench.project / "untracked").write_text("u\n")
    bench.draft()
    bench.run("sed -i s/one/two/ a; echo more >> untracked")

    done = committed(bench)

    assert done.commit is not None
    assert done.commit.whole == (at("a"), at("untracked"))
    assert changed(bench.project) == []


def test_a_mode_that_did_not_change_stays_as_it_is_committed(bench: Bench) -> None:
    git(bench.project, "update-index", "--chmod=+x", "a")
    git(bench.project, "commit", "-qm", "x")
    bench.draft()
    bench.run("echo new > a")
    committed(bench)
    assert tree(bench.project)["a"] == "100755 new\n"


def test_an_index_that_is_not_touched_is_the_same_file(bench: Bench) -> None:
    (bench.project / "a").write_text("staged\n")
    git(bench.project, "add", "a")
    bench.draft()
    bench.run("echo published > a")
    index = bench.project / ".git" / "index"
    before = (index.read_bytes(), index.stat().st_ino)
    committed(bench)
    assert (index.read_bytes(), index.stat().st_ino) == before


@pytest.mark.promise("W14")
def test_while_git_has_the_index_it_is_left_alone(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    lock = bench.project / ".git" / "index.lock"
    lock.write_text("held")
    index = (bench.project / ".git" / "index").read_bytes()

    done = committed(bench)

    assert done.commit is not None and not done.commit.problem
    assert (bench.project / ".git" / "index").read_bytes() == index
    assert lock.read_text() == "held"


def test_a_first_commit(bench: Bench) -> None:
    begin(bench.project, commit=False)
    bench.draft()
    bench.run("echo new > a")
    done = committed(bench, None)
    assert done.commit is not None and done.commit.parent is None
    assert tree(bench.project) == {"a": "100644 new\n"}
    assert git(bench.project, "log", "--format=%s").strip() == "Publish a"
    assert changed(bench.project) == ["?? d/"]


def test_on_a_detached_head_there_is_no_branch(bench: Bench) -> None:
    git(bench.project, "checkout", "-q", "--detach")
    main = git(bench.project, "rev-parse", "main")
    bench.draft()
    bench.run("echo new > a")
    done = committed(bench)
    assert done.commit is not None and done.commit.branch is None
    assert git(bench.project, "rev-parse", "main") == main
    assert git(bench.project, "rev-parse", "HEAD").strip() == done.commit.id


def test_nothing_published_is_nothing_committed(bench: Bench) -> None:
    head = git(bench.project, "rev-parse", "HEAD")
    bench.draft()
    assert committed(bench).commit is None
    bench.run("mkdir empty")
    done = committed(bench)
    assert (done.count, done.commit and done.commit.id) == (1, None)
    assert git(bench.project, "rev-parse", "HEAD") == head


@pytest.mark.promise("W14")
def test_in_a_subdirectory_of_a_repository(tmp_path: Path) -> None:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as bench:
        (bench.project / ".git" / "HEAD").unlink()
        (bench.project / ".git").rmdir()
        git(bench.base, "init", "-q", "-b", "main")
        identify(bench.base)
        (bench.base / "top").write_text("top\n")
        git(bench.base, "add", "top", "project")
        git(bench.base, "commit", "-qm", "first")
        bench.draft()
        bench.run("echo new > a; rm d/b")
        committed(bench)
        assert tree(bench.base) == {"project/a": "100644 new\n", "top": "100644 top\n"}


@pytest.mark.promise("W14")
def test_submodules_and_nested_repositories_are_left_out_and_named(
    bench: Bench, tmp_path: Path
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "code").write_text("code\n")
    begin(library)
    git(bench.project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library))
    git(bench.project, "commit", "-qm", "submodule")
    link = tree(bench.project)["library"]
    (bench.project / "nested").mkdir()
    begin(bench.project / "nested", commit=False)
    bench.draft()
    bench.run("echo new > a; echo x > library/code; echo y > nested/file")

    done = committed(bench)

    assert done.commit is not None
    assert done.commit.left_out == (at("library/code"), at("nested/file"))
    assert tree(bench.project)["library"] == link
    assert "nested/file" not in tree(bench.project)
    assert git(bench.project, "diff", "--name-only", "HEAD^", "HEAD").split() == ["a"]


@pytest.mark.promise("W14")
def test_in_a_linked_worktree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    (main / "a").write_text("a\n")
    begin(main)
    with bench_at(tmp_path / "bench", DraftMode.OVERLAY) as bench:
        (bench.project / ".git" / "HEAD").unlink()
        (bench.project / ".git").rmdir()
        git(main, "worktree", "add", "-q", "-b", "side", "-f", str(tmp_path / "moved"))
        for each in (tmp_path / "moved").iterdir():
            each.rename(bench.project / each.name)
        (tmp_path / "moved").rmdir()
        git(bench.project, "worktree", "repair")
        fired = arm(bench.project, tmp_path / "wires")
        bench.draft()
        bench.run("echo new > a")
        for each in fired.iterdir():
            each.unlink()

        done = committed(bench)

        assert tripped(fired) == set()
        assert done.commit is not None and done.commit.branch == "side"
        assert tree(bench.project, "side")["a"] == "100644 new\n"
        assert tree(main, "main")["a"] == "100644 a\n"


@pytest.mark.promise("W14")
def test_without_an_identity_nothing_is_published(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("name", "email"):
        git(bench.project, "config", "--unset", f"user.{name}")
    bench.draft()
    bench.run("echo new > a")
    before = bench.sight()
    with pytest.raises(GitIdentityMissing):
        committed(bench)
    assert bench.sight() == before


@pytest.mark.promise("W14")
@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge"])
def test_in_the_middle_of_a_merge_nothing_is_published(bench: Bench, name: str) -> None:
    bench.draft()
    bench.run("echo new > a")
    (bench.project / ".git" / name).mkdir()
    before = bench.sight()
    with pytest.raises(GitRepositoryRefused):
        committed(bench)
    assert bench.sight() == before


def test_where_there_is_no_repository_nothing_is_published(tmp_path: Path) -> None:
    with bench_at(tmp_path / "bench", DraftMode.COPY) as bench:
        bench.draft()
        bench.run("echo new > a")
        with pytest.raises(GitRepositoryMissing):
            committed(bench)
        assert (bench.project / "a").read_bytes() == LINES


def test_an_unknown_extension_is_refused_before_anything(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    with open(bench.project / ".git" / "config", "a", encoding="utf-8") as config:
        config.write("[extensions]\n    novel = true\n")
    with pytest.raises(GitRepositoryRefused):
        committed(bench)
    assert (bench.project / "a").read_bytes() == LINES


@pytest.mark.promise("W14")
def test_a_branch_that_moves_meanwhile_keeps_its_commit(bench: Bench) -> None:
    bench.draft()
    bench.run("echo new > a")
    project = bench.project

    def commit() -> None:
        (project / "theirs").write_text("theirs\n")
        git(project, "add", "theirs")
        git(project, "commit", "-qm", "theirs")

    done = committed(bench, workbench=disturbed(bench, COMMITTED, commit, is_before=True))

    assert done.commit is not None and "main moved" in done.commit.problem
    assert (project / "a").read_text() == "new\n"
    assert git(project, "log", "-1", "--format=%s").strip() == "theirs"
    assert changed(project) == [" M a"]


@pytest.mark.promise("W14")
@pytest.mark.parametrize("markers", [PREPARED, COMMITTED])
@pytest.mark.parametrize("is_before", [True, False])
def test_killed_on_the_way_the_next_command_commits_or_undoes_both(
    bench: Bench, markers: int, is_before: bool
) -> None:
    bench.draft()
    bench.run("echo new > a")
    first = git(bench.project, "rev-parse", "HEAD").strip()
    is_killed = killed(
        bench,
        markers,
        lambda workbench: committed(bench, workbench=workbench),
        is_before=is_before,
    )
    assert is_killed

    found = recover(bench.workbench)

    is_published = (bench.project / "a").read_text() == "new\n"
    head = git(bench.project, "rev-parse", "HEAD").strip()
    assert is_published == (markers == COMMITTED and not is_before)
    assert (head != first) == is_published
    if is_published:
        assert found[0].commit is not None and found[0].commit.id == head
        assert changed(bench.project) == []
    assert recover(bench.workbench) == ()
    assert git(bench.project, "rev-parse", "HEAD").strip() == head


@pytest.mark.promise("W14")
def test_finished_twice_it_is_one_commit_also_if_the_person_went_on(bench: Bench) -> None:
    with bench.workbench.locked() as (handle, _):
        content, size = handle.store.put_content([b"new\n"])
        entry = PathEntry(EntryKind.FILE, 0o644, content=content, size=size)
        facts = prepare_commit(
            handle, (PathChange(at("new"), None, entry),), CommitOrder(message="new")
        )
        assert finish_commit(handle, facts)["problem"] == ""
        git(bench.project, "commit", "-q", "--allow-empty", "-m", "theirs")
        assert finish_commit(handle, facts)["problem"] == ""
    log = git(bench.project, "log", "--format=%s").split()
    assert log == ["theirs", "new", "first"]
