"""Whatever is true of drafts for root is true for an ordinary user."""

from __future__ import annotations

import os
import sys

import pytest

from tests.parts.ordinary_user import (
    GID,
    UID,
    as_ordinary_user,
    ordinary_directory,
    run_tests_as_ordinary_user,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already"),
]


@pytest.mark.long
@pytest.mark.parametrize(
    "files",
    [
        ["tests/workbench/draft/test_drafts.py"],
        ["tests/workbench/draft/test_overlay_mount.py", "tests/workbench/draft/test_view.py"],
        [
            "tests/confine/place/test_remount.py",
            "tests/workbench/draft/test_project_copy.py",
            "tests/workbench/draft/test_project_copy_data.py",
            "tests/workbench/draft/test_drafts_premises.py",
            "tests/workbench/git/test_repository_worktrees.py",
            "tests/workbench/scan/test_overlay_reader.py",
            "tests/workbench/test_tree_removal.py",
        ],
    ],
    ids=["drafts", "views", "parts"],
)
def test_the_tests_of_drafts_pass_for_an_ordinary_user(files: list[str]) -> None:
    complaint = run_tests_as_ordinary_user(*files)

    assert complaint is None, complaint


_MAKE = """
import sys
from pathlib import Path
from holdfast.workbench.draft.view import open_view
from tests.workbench.drafting_table import opened
base = Path(sys.argv[1])
drafts = opened(base, base / "project")
made = drafts.make()
print(made.mode, "other users" in made.reason)
print(sorted((str(each.path), str(each.reason)) for each in made.left_out))
copy = drafts.copy_of(made)
(copy / "of root").write_text("changed")
print((base / "project" / "of root").read_text(), (copy / "of root").read_text())
drafts.remove(made)
print(list(drafts.directory.iterdir()))
"""


def test_a_project_with_files_of_others_gets_a_copy_that_can_be_changed() -> None:
    with ordinary_directory() as base:
        project = base / "project"
        project.mkdir()
        (project / "of root").write_text("kept")
        (project / "secret of root").write_text("secret")
        (project / "secret of root").chmod(0o600)
        os.chown(project, UID, GID)

        done = as_ordinary_user(sys.executable, "-c", _MAKE, base)

        assert (done.stdout, done.stderr) == (
            "copy True\n[('secret of root', 'unreadable')]\nkept changed\n[]\n",
            "",
        )
