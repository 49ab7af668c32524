"""What git ignores stays in the draft and in checkpoints, and is published by choice only."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.workbench import PublishOrder, preview, publish, review, status
from tests.workbench.benches import Bench, at

pytestmark = pytest.mark.promise("W13")
NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
MODULES = "mkdir -p node_modules/x; for n in 1 2 3; do echo $n > node_modules/x/$n; done"


def git(project: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(project), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=project, env=environment, check=True, timeout=60)


def paths(bench: Bench) -> list[str]:
    return [str(each.path) for each in review(bench.workbench).files]


def test_they_are_counted_and_stay(bench: Bench) -> None:
    (bench.project / ".gitignore").write_text("node_modules/\n*.pyc\n")
    bench.draft()
    bench.run(f"{MODULES}; echo new > a; mkdir -p e/f; echo x > e/f/b.pyc; echo x > c.pyc")
    found = review(bench.workbench)

    assert paths(bench) == ["a"]
    assert found.ignored == {".": 1, "e": 3, "node_modules": 5}
    done = publish(bench.workbench, PublishOrder(sealed=found.seal))
    assert (done.paths, done.remaining, done.ignored) == ((at("a"),), 9, 9)
    assert not (bench.project / "node_modules").exists()
    assert not (bench.project / "e").exists()
    (each,) = status(bench.workbench).drafts
    assert (each.changed, each.ignored) == (0, 9)
    assert bench.run("cat node_modules/x/1 e/f/b.pyc") == "1\nx\n"

    done = publish(bench.workbench, PublishOrder(with_ignored=True))
    assert (done.count, done.remaining, done.ignored) == (9, 0, 0)
    assert (bench.project / "node_modules/x/1").read_text() == "1\n"


def test_who_names_them_has_them(bench: Bench) -> None:
    (bench.project / ".gitignore").write_text("out/\n*.pyc\n")
    bench.draft()
    bench.run("mkdir out; echo x > out/x; echo x > d/b.pyc; echo new > d/b")

    def wanted(*only: str) -> list[str]:
        order = PublishOrder(only=tuple(map(at, only)))
        return [str(each.path) for each in preview(bench.workbench, order).files]

    assert wanted("d") == ["d/b"]
    assert wanted("out") == ["out", "out/x"]
    assert wanted("out/x") == ["out", "out/x"]
    assert wanted("d/b.pyc") == ["d/b.pyc"]
    assert [str(each.path) for each in review(bench.workbench, paths=[at("out")]).files] == [
        "out",
        "out/x",
    ]


def test_a_directory_can_go_with_what_is_ignored_in_it(bench: Bench) -> None:
    (bench.project / ".gitignore").write_text("*.pyc\n")
    (bench.project / "d" / "b.pyc").write_text("x")
    bench.draft()
    bench.run("rm -r d")

    done = publish(bench.workbench, PublishOrder())
    assert (done.count, done.remaining) == (3, 0)
    assert not (bench.project / "d").exists()


def test_rules_of_the_draft_count_and_those_further_down(bench: Bench) -> None:
    bench.draft()
    bench.run("echo b.log > d/.gitignore; echo x > d/b.log; echo x > b.log")

    assert paths(bench) == ["b.log", "d/.gitignore"]


@NEEDS_GIT
def test_what_is_tracked_is_published_as_ever(bench: Bench) -> None:
    shutil.rmtree(bench.project / ".git")
    git(bench.project, "init", "-q")
    (bench.project / ".gitignore").write_text("build/\n")
    (bench.project / ".git/info/exclude").write_text("mine\n")
    (bench.project / "build").mkdir()
    (bench.project / "build" / "Makefile").write_text("all:\n")
    git(bench.project, "add", "-f", "build/Makefile")
    bench.draft()
    bench.run("echo new > build/Makefile; echo x > build/x; echo x > mine")

    assert paths(bench) == ["build/Makefile"]
    assert review(bench.workbench).ignored == {".": 1, "build": 1}


@NEEDS_GIT
def test_in_a_worktree_the_index_is_elsewhere(layered: Bench) -> None:
    shutil.rmtree(layered.project)
    main = layered.base / "main"
    main.mkdir()
    git(main, "init", "-q")
    (main / ".gitignore").write_text("build/\n")
    (main / "build").mkdir()
    (main / "build" / "Makefile").write_text("all:\n")
    git(main, "add", "-f", ".")
    git(main, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "one")
    git(main, "worktree", "add", "-q", str(layered.project))
    (main / ".git/info/exclude").write_text("mine\n")
    layered.draft()
    layered.run("echo new > build/Makefile; echo x > build/x; echo x > mine")

    assert paths(layered) == ["build/Makefile"]
    assert review(layered.workbench).ignored == {".": 1, "build": 1}


@NEEDS_GIT
def test_nothing_of_the_repository_is_run(bench: Bench) -> None:
    shutil.rmtree(bench.project / ".git")
    git(bench.project, "init", "-q")
    mark = bench.base / "ran"
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge", "core.hooksPath"):
        git(bench.project, "config", key, f"touch {mark}; false")
    (bench.project / ".gitattributes").write_text("* filter=x\n")
    (bench.project / ".gitignore").write_text("*.pyc\n")
    bench.draft()
    bench.run("echo new > a; echo x > b.pyc")
    found = review(bench.workbench)
    publish(bench.workbench, PublishOrder(sealed=found.seal))

    assert ([str(each.path) for each in found.files], mark.exists()) == (["a"], False)


def test_rules_that_are_links_or_endless_are_not_read(bench: Bench) -> None:
    bench.draft()
    bench.run("ln -s /dev/zero .gitignore; echo x > x.pyc")

    assert "x.pyc" in paths(bench)
