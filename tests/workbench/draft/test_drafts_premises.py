"""What no draft can be made of is refused with the reason."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest

from holdfast.workbench.draft.drafts import refuse_unfit_project
from holdfast.workbench.draft.view import open_view
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.model import DraftMode
from tests.workbench.drafting_table import drafting, run


def reason(project: Path, kept_in: Path) -> str:
    with pytest.raises(ProjectRefused) as raised:
        refuse_unfit_project(project, kept_in=kept_in)
    assert raised.value.path == str(project)
    return raised.value.reason


def test_a_directory_beside_what_is_kept_is_fine(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    refuse_unfit_project(tmp_path / "project", kept_in=tmp_path / "state" / "drafts")


def test_the_machine_and_the_home_are_too_much(tmp_path: Path) -> None:
    homes = [Path(each.pw_dir) for each in pwd.getpwall() if each.pw_uid == os.geteuid()]
    for much in (Path("/"), *homes[:1]):
        if much.is_dir():
            assert "root or a home directory" in reason(much, tmp_path)


def test_nothing_holds_its_own_drafts(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert "inside of it" in reason(tmp_path, tmp_path / "state")
    assert "inside of it" in reason(tmp_path / "link", tmp_path / "state")
    assert "inside of it" in reason(tmp_path, tmp_path)


def test_a_file_and_nothing_are_no_projects(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert reason(tmp_path / "file", tmp_path / "state") == "it is not a directory"
    assert reason(tmp_path / "none", tmp_path / "state") == "it is not a directory"


def test_a_draft_has_no_drafts(tmp_path: Path) -> None:
    with drafting(tmp_path) as drafts:
        copy = drafts.copy_of(drafts.make(DraftMode.COPY))
        for part in (copy, copy / "d"):
            assert reason(part, tmp_path / "elsewhere") == "it is part of a draft itself"


_ASK = """
import sys
from pathlib import Path
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.draft.drafts import refuse_unfit_project
try:
    refuse_unfit_project(Path(sys.argv[1]), kept_in=Path("/nowhere"))
except ProjectRefused as refused:
    print(refused.reason)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")
@pytest.mark.timeout(method="signal")  # no thread beside us: we fork
def test_whoever_is_in_a_draft_makes_none_of_it(tmp_path: Path) -> None:
    ask = tmp_path / "ask.py"
    ask.write_text(_ASK)
    with drafting(tmp_path) as drafts, open_view(drafts, drafts.make(DraftMode.OVERLAY)) as view:
        assert view.place is not None
        python = f"PYTHONPATH={':'.join(sys.path)} {sys.executable}"
        said = run(view.place, f"{python} {ask} {drafts.project}", cwd=drafts.project)

        assert said == "it is seen through a draft already\n"
