"""Only plain files that look like git's own leave a draft's repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.nouns import Id
from holdfast.workbench.git.repository import find_repository, scratch_in
from holdfast.workbench.model import Draft, DraftMode
from holdfast.workbench.operations.git_branch import DraftRepository, quarantined
from tests.workbench.repositories import begin, git


@pytest.mark.promise("W14")
def test_links_and_settings_stay_behind(tmp_path: Path) -> None:
    project, copy = tmp_path / "project", tmp_path / "copy"
    project.mkdir()
    (project / "a").write_text("a")
    begin(project)
    git(tmp_path, "clone", "-q", "--no-local", str(project), str(copy))
    (copy / ".git" / "refs" / "heads" / "link").symlink_to("/etc/hostname")
    (copy / ".git" / "refs" / "heads" / "odd").mkdir()
    os.mkfifo(copy / ".git" / "refs" / "heads" / "odd" / "pipe")
    (copy / ".git" / "objects" / "info" / "alternates").write_text("/etc\n")
    (copy / ".git" / "objects" / "zz").mkdir()
    (copy / ".git" / "packed-refs").unlink(missing_ok=True)
    (copy / ".git" / "packed-refs").symlink_to("/etc/hostname")
    directory = os.open(copy / ".git", os.O_RDONLY)
    draft = Draft(id=Id("draft_1"), project=str(project), mode=DraftMode.COPY, at_ms=0)
    try:
        with scratch_in(tmp_path) as scratch:
            source = DraftRepository(directory, directory)
            made = quarantined(source, draft, find_repository(project), scratch)
            head = made.run("rev-parse", "HEAD").decode()
            files = {
                str(path.relative_to(scratch))
                for path in scratch.rglob("*")
                if not path.is_dir() and "objects/pack" not in str(path)
            }
            assert not any(path.is_symlink() for path in scratch.rglob("*"))
            lent = (scratch / "objects" / "info" / "alternates").read_text()
    finally:
        os.close(directory)
    assert head == git(project, "rev-parse", "HEAD")
    assert files == {"config", "HEAD", "refs/heads/main", "objects/info/alternates"}
    assert lent == f'"{project}/.git/objects"\n'
