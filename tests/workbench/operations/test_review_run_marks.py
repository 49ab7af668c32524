"""What git would run or obey is marked, also where no name tells."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.workbench import review
from tests.workbench.benches import Bench

pytestmark = pytest.mark.promise("W13")


def marks(bench: Bench) -> dict[str, bool]:
    return {str(each.path): bool(each.runs) for each in review(bench.workbench).files}


def test_hooks_and_configuration_that_a_configuration_names(bench: Bench) -> None:
    (bench.project / ".git" / "config").write_text(
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../git.inc\n"
    )
    bench.draft()
    bench.run("mkdir -p tools/hooks; echo x > tools/hooks/pre-commit; echo x > git.inc; echo > x")

    assert marks(bench) == {
        "git.inc": True,
        "tools": False,
        "tools/hooks": False,
        "tools/hooks/pre-commit": True,
        "x": False,
    }


def test_what_the_draft_itself_configures_counts_as_well(bench: Bench) -> None:
    bench.draft()
    bench.run("printf '[core]\\n\\thooksPath = h\\n' > .git/config; mkdir h; echo x > h/pre-push")

    assert marks(bench) == {"h": False, "h/pre-push": True}


def test_bare_repositories(bench: Bench) -> None:
    bench.draft()
    bench.run("mkdir -p s/objects s/refs s/hooks; echo > s/config; echo > s/hooks/x; echo > config")
    assert not any(marks(bench).values())
    bench.run("echo 'ref: refs/heads/main' > s/HEAD")

    assert [path for path, is_marked in marks(bench).items() if is_marked] == [
        "s/HEAD",
        "s/config",
        "s/hooks/x",
    ]


def test_configuration_of_repositories_in_the_project(bench: Bench) -> None:
    (bench.project / "deep/sub/.git").mkdir(parents=True)
    (bench.project / "deep/sub/.git/config").write_text("[core]\n\thooksPath = h\n")
    bench.draft()
    bench.run("mkdir -p h deep/sub/h; echo x > h/pre-push; echo x > deep/sub/h/pre-push")

    assert marks(bench) == {
        "deep/sub/h": False,
        "deep/sub/h/pre-push": True,
        "h": False,
        "h/pre-push": False,
    }


def test_configuration_of_the_repository_of_a_worktree(bench: Bench, tmp_path: Path) -> None:
    shutil.rmtree(bench.project / ".git")
    (tmp_path / "r/worktrees/p").mkdir(parents=True)
    (tmp_path / "r/config").write_text("[core]\n\thooksPath = h\n")
    (tmp_path / "r/worktrees/p/commondir").write_text("../..\n")
    (bench.project / ".git").write_text("gitdir: ../../r/worktrees/p\n")
    bench.draft()
    bench.run("mkdir h; echo x > h/pre-push")

    assert marks(bench) == {"h": False, "h/pre-push": True}


def test_configuration_of_the_person(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[core]\n\thooksPath = h\n")
    bench.draft()
    bench.run("mkdir h; echo x > h/pre-push")

    assert marks(bench) == {"h": False, "h/pre-push": True}


def test_what_is_configured_by_a_file_that_is_included(bench: Bench) -> None:
    (bench.project / ".git/config").write_text("[include]\n\tpath = ../more\n")
    (bench.project / "more").write_text("[core]\n\thooksPath = h\n")
    bench.draft()
    bench.run("mkdir h; echo x > h/pre-push")

    assert marks(bench) == {"h": False, "h/pre-push": True}


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000, "\udcff", "a\x01b", "."])
def test_odd_names_in_a_configuration_stop_no_review(bench: Bench, name: str) -> None:
    config = f"[core]\nhooksPath = {name}\n".encode("utf-8", "surrogateescape")
    (bench.project / ".git/config").write_bytes(config)
    bench.draft()
    bench.run("echo x > x")

    assert list(marks(bench)) == ["x"]
