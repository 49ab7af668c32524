"""Git runs on a repository without any of its configuration, and on nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench.failures import GitFailed, GitRepositoryMissing, GitUnavailable
from holdfast.workbench.git.repository import clean_git, find_repository, scratch_in
from tests.workbench.repositories import begin, git


def test_a_repository_is_found_from_below_and_from_a_worktree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    (main / "below").mkdir(parents=True)
    (main / "below" / "f").write_text("f")
    begin(main)
    git(main, "worktree", "add", "-q", str(tmp_path / "side"))
    found = find_repository(main / "below")
    assert (found.directory, found.top) == (main / ".git", main)
    assert not found.is_linked_worktree
    side = find_repository(tmp_path / "side")
    assert side.is_linked_worktree and side.common == main / ".git"
    with pytest.raises(GitRepositoryMissing):
        find_repository(tmp_path)


@pytest.mark.promise("W14")
def test_neither_settings_nor_the_environment_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a")
    begin(project)
    git(project, "config", "core.compression", "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.evil")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "yes")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    with scratch_in(tmp_path) as scratch:
        made = clean_git(find_repository(project), scratch)
        said = made.run("config", "--list").decode()
        head = made.run("rev-parse", "HEAD").decode()
        with pytest.raises(GitFailed):
            made.run("cat-file", "-p", "0" * 40)
    assert "user." not in said and "core.compression=1" in said
    monkeypatch.delenv("GIT_DIR")
    assert head == git(project, "rev-parse", "HEAD")
    assert not scratch.exists()


def test_what_a_kill_left_behind_goes(tmp_path: Path) -> None:
    left = tmp_path / "git-left"
    left.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (left / "link").symlink_to(outside)
    with scratch_in(tmp_path):
        assert not left.exists()
    assert (outside / "kept").exists()


def test_without_git_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    begin(project, commit=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with scratch_in(tmp_path) as scratch, pytest.raises(GitUnavailable):
        clean_git(find_repository(project), scratch)
