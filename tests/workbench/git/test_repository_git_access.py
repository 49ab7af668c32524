"""What git needs outside of a project: hooks and configuration are never among what is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench.git.repository import GitAccess, git_access_for
from tests.workbench.repositories import begin, git


@pytest.mark.promise("W14")
def test_a_linked_worktree_commits_and_a_submodule_looks(tmp_path: Path) -> None:
    main, side = tmp_path / "main", tmp_path / "side"
    main.mkdir()
    (main / "a").write_text("a\n")
    begin(main)
    git(main, "worktree", "add", "-q", str(side))
    assert git_access_for(main) == GitAccess()
    common = main / ".git"
    found = git_access_for(side)
    own = common / "worktrees" / "side"
    assert found.readable == tuple(
        str(each) for each in (common, own / "commondir", own / "config.worktree")
    )
    assert found.writable == tuple(
        str(common / each) for each in ("objects", "refs", "logs", "worktrees/side")
    )
    words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(main), "lib")
    git(side, *words)
    assert git_access_for(side / "lib") == GitAccess((str(common / "worktrees/side/modules/lib"),))
    assert git_access_for(tmp_path) == GitAccess()
