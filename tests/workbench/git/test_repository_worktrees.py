"""Git data outside of a project is found, as real git leaves it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.workbench.failures import WorktreeUncovered
from holdfast.workbench.git.repository import git_data_elsewhere

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

SETTINGS = (
    "user.name=a",
    "user.email=a@b",
    "protocol.file.allow=always",
    "init.defaultBranch=main",
)


def git(where: Path, *words: str) -> str:
    """What git says, which must succeed; nothing of the machine's settings counts."""
    options = [word for each in SETTINGS for word in ("-c", each)]
    done = subprocess.run(
        ["git", *options, *words],
        cwd=where,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"},
    )
    return done.stdout


def repository(where: Path) -> Path:
    """A repository with one commit."""
    where.mkdir(parents=True)
    git(where, "init", "-q")
    (where / "f").write_text("f")
    git(where, "add", "f")
    git(where, "commit", "-q", "-m", "first")
    return where


def test_a_plain_repository_has_all_inside(tmp_path: Path) -> None:
    assert git_data_elsewhere(repository(tmp_path / "main")) == ()


def test_no_repository_has_none(tmp_path: Path) -> None:
    assert git_data_elsewhere(tmp_path) == ()


def test_a_worktree_has_its_repository_elsewhere(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "../tree")

    assert git_data_elsewhere(tmp_path / "tree") == (str(main / ".git"),)
    assert git_data_elsewhere(main) == ()


def test_a_worktree_inside_of_its_repository_is_found_only_from_itself(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "trees/one")

    assert git_data_elsewhere(main / "trees" / "one") == (str(main / ".git"),)
    assert git_data_elsewhere(main) == ()


def test_submodules_of_a_repository_are_inside(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(main, "submodule", "--quiet", "add", str(other), "libs/other")

    assert git_data_elsewhere(main) == ()


def test_a_submodule_has_its_data_in_what_it_is_part_of(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(main, "submodule", "--quiet", "add", str(other), "libs/other")

    assert git_data_elsewhere(main / "libs" / "other") == (
        str(main / ".git" / "modules" / "libs" / "other"),
    )


def test_submodules_of_a_worktree_are_where_it_is(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(main, "submodule", "--quiet", "add", str(other), "libs/other")
    git(main, "commit", "-q", "-m", "second")
    git(main, "worktree", "add", "-q", "../tree")
    git(tmp_path / "tree", "submodule", "--quiet", "update", "--init")

    assert git_data_elsewhere(tmp_path / "tree") == (str(main / ".git"),)


def test_a_submodule_with_data_anywhere_is_found(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(main, "submodule", "--quiet", "add", str(other), "libs/other")
    modules = main / ".git" / "modules" / "libs" / "other"
    modules.rename(tmp_path / "modules")
    (main / "libs" / "other" / ".git").write_text(f"gitdir: {tmp_path / 'modules'}\n")

    assert git_data_elsewhere(main) == (str(tmp_path / "modules"),)


def test_a_separate_or_linked_repository_is_elsewhere(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", "apart", "one")
    linked = repository(tmp_path / "linked")
    (linked / ".git").rename(tmp_path / "behind")
    (linked / ".git").symlink_to("../behind")

    assert git_data_elsewhere(tmp_path / "one") == (str(tmp_path / "apart"),)
    assert git_data_elsewhere(linked) == (str(tmp_path / "behind"),)


@pytest.mark.parametrize("said", ["/etc", "/", "../outside", "nowhere", "", "\0", "/proc/self"])
def test_what_is_no_repository_is_not_believed(tmp_path: Path, said: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".git").write_text(f"gitdir: {said}\n")

    assert git_data_elsewhere(tmp_path / "project") == ()


def test_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    main, other = repository(tmp_path / "main"), repository(tmp_path / "other")
    git(other, "worktree", "add", "-q", "../tree")
    (main / "libs").symlink_to("..")
    (main / ".gitmodules").write_text('[submodule "x"]\n\tpath = libs/tree\n')

    assert git_data_elsewhere(main) == ()


def test_a_project_inside_of_its_own_git_data_is_refused(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", ".git/tree")

    with pytest.raises(WorktreeUncovered) as raised:
        git_data_elsewhere(main / ".git" / "tree")
    assert raised.value.outside == str(main / ".git")
