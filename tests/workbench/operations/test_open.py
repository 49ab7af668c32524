"""One at a time has a project in hand, however it is spelled, and nothing of it runs."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.failures import Failure, TooManyOpenFiles
from holdfast.workbench import (
    DeletePath,
    PublishOrder,
    RestoreOrder,
    Workbench,
    apply,
    checkpoint,
    compare,
    discard,
    publish,
    restore,
    review,
    status,
    undo,
)
from holdfast.workbench.failures import ProjectRefused, WorkbenchHeld
from holdfast.world.failures import DiskUnusable
from tests.parts.ordinary_user import missing_for_ordinary_user, run_tests_as_ordinary_user
from tests.workbench.benches import Bench, at
from tests.workbench.drafting_table import ENV

GIT = shutil.which("git")
HOLDING = """
import sys
from pathlib import Path
from holdfast.workbench import Workbench
with Workbench.at(Path(sys.argv[1]), Path(sys.argv[2])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_it_is_the_same_however_the_project_is_spelled(layered: Bench) -> None:
    link = layered.base / "link"
    link.symlink_to(layered.project)
    state = layered.base / "state"
    spellings = [layered.project, link, layered.base / "project" / "d" / "..", link / "."]

    found = {Workbench.at(each, state).directory for each in spellings}

    assert found == {layered.workbench.directory}
    assert layered.workbench.directory == state / "workbench" / layered.workbench.id
    assert Workbench.at(layered.project / "d", state).id != layered.workbench.id


def test_what_is_no_directory_is_no_project(layered: Bench) -> None:
    for name in ("a", "nothing"):
        with pytest.raises(ProjectRefused):
            Workbench.at(layered.project / name, layered.base / "state")
    (layered.base / "loop").symlink_to(layered.base / "loop")
    with pytest.raises(ProjectRefused):
        Workbench.at(layered.base / "loop", layered.base / "state")


def test_nothing_is_kept_inside_of_what_it_is_kept_of(layered: Bench) -> None:
    for state in (layered.project, layered.project / "d" / "state"):
        with pytest.raises(ProjectRefused):
            Workbench.at(layered.project, state)


def test_a_project_may_have_any_name(tmp_path: Path) -> None:
    project = tmp_path / os.fsdecode(b"pr\xff\noject")
    project.mkdir()
    (project / "a").write_bytes(b"a\n")
    workbench = Workbench.at(project, tmp_path / "state")
    kept = checkpoint(workbench, "any\udcff words")
    (project / "a").unlink()

    restore(workbench, RestoreOrder(checkpoint=kept.id))

    assert (project / "a").read_bytes() == b"a\n"
    assert len(list((workbench.directory / "meta" / "reports").glob("*.html"))) == 1


def test_a_project_that_has_gone_is_refused(layered: Bench) -> None:
    workbench = layered.workbench
    shutil.rmtree(layered.project)

    with pytest.raises(ProjectRefused):
        checkpoint(workbench)


def test_the_directory_says_of_which_project_it_is(layered: Bench) -> None:
    checkpoint(layered.workbench)

    said = json.loads((layered.workbench.directory / "project.json").read_bytes())

    assert said["project"] == str(layered.project)


def test_two_at_once_wait_for_each_other_but_not_for_ever(layered: Bench) -> None:
    state = str(layered.base / "state")
    argv = [sys.executable, "-c", HOLDING, str(layered.project), state]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(WorkbenchHeld), layered.workbench.locked(patience=0.05):
            pass
        other.stdin.close()
        with layered.workbench.locked() as (handle, recovered):
            assert handle.drafts.all() == recovered == ()


def test_several_deeds_need_one_opening(layered: Bench) -> None:
    with layered.workbench.kept_open() as workbench:
        with pytest.raises(WorkbenchHeld), layered.workbench.locked(patience=0.0):
            pass
        made = checkpoint(workbench)
        (layered.project / "new").write_bytes(b"new")
        with workbench.locked() as (handle, _), workbench.locked() as (again, recovered):
            assert (again, recovered) == (handle, ())
        restored = restore(workbench, RestoreOrder(checkpoint=made.id))
        assert [str(path) for path in restored.paths] == ["new"]
    with workbench.locked() as (later, _):
        assert later is not handle


def hostile(project: Path, wire: Path) -> None:
    """Arm all that git runs in a repository: whatever runs leaves a trace."""
    trip = f"touch {wire}"
    subprocess.run([str(GIT), "init", "-q", str(project)], env=ENV, check=True)
    with (project / ".git" / "config").open("a") as config:
        config.write(
            f'[core]\n\tfsmonitor = "{trip} #"\n\tpager = {trip}\n\teditor = {trip}\n'
            f'\tsshCommand = {trip}\n[diff "x"]\n\ttextconv = "{trip} #"\n\tcommand = {trip}\n'
            f'[filter "x"]\n\tclean = {trip}\n\tsmudge = {trip}\n\tprocess = {trip}\n'
            f'[credential]\n\thelper = "!{trip}"\n[merge "x"]\n\tdriver = {trip}\n'
            f'[alias]\n\tstatus = "!{trip}"\n[include]\n\tpath = ../evil\n'
        )
    (project / "evil").write_text(f'[core]\n\thooksPath = "{project}/hooks"\n')
    (project / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    for hooks in (project / ".git" / "hooks", project / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-checkout", "post-index-change", "post-merge"):
            (hooks / name).write_text(f"#!/bin/sh\n{trip}\n")
            (hooks / name).chmod(0o755)


@pytest.mark.promise("W9")
@pytest.mark.skipif(GIT is None, reason="there is no git here to arm")
def test_nothing_that_a_hostile_repository_brings_is_ever_run(bench: Bench) -> None:
    wire = bench.base / "tripped"
    shutil.rmtree(bench.project / ".git")
    hostile(bench.project, wire)
    subprocess.run([str(GIT), "status"], cwd=bench.project, env=ENV, capture_output=True)
    assert wire.exists(), "the repository is not armed"
    wire.unlink()

    kept = checkpoint(bench.workbench)
    draft = bench.draft()
    bench.run("echo new > a; echo x >> .git/config")
    apply(bench.workbench, draft, [DeletePath(at("d/b"))])
    (bench.project / "a").write_bytes(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
    undo(bench.workbench)
    order = PublishOrder(force=(at("a"),), with_git=True, sealed=review(bench.workbench).seal)
    publish(bench.workbench, order)
    compare(bench.workbench, kept.id)
    restore(bench.workbench, RestoreOrder(checkpoint=kept.id, with_git=True))
    status(bench.workbench)
    discard(bench.workbench, draft)

    assert not wire.exists()


STATE = "tests/workbench/operations/test_draft_state.py"
FLOWS = [
    "tests/workbench/operations/test_publish.py",
    "tests/workbench/operations/test_restore.py",
    "tests/workbench/operations/test_batches.py",
    "tests/workbench/operations/test_drafts.py",
    STATE,
    "tests/workbench/operations/test_recovery.py",
]


@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
@pytest.mark.skipif(missing_for_ordinary_user() is not None, reason="only Linux has namespaces")
def test_an_ordinary_user_does_what_root_does() -> None:
    assert run_tests_as_ordinary_user(STATE) is None


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="we are an ordinary user already")
@pytest.mark.skipif(missing_for_ordinary_user() is not None, reason="only Linux has namespaces")
@pytest.mark.timeout(600)
def test_an_ordinary_user_does_all_that_root_does() -> None:
    assert run_tests_as_ordinary_user(*FLOWS, patience=590) is None


@pytest.mark.parametrize(
    ("number", "failure"),
    [
        (errno.ESTALE, DiskUnusable(path="/some/where", reason="refused")),
        (errno.EMFILE, TooManyOpenFiles(reason="refused")),
    ],
)
def test_an_error_of_the_system_becomes_a_failure(
    layered: Bench, number: int, failure: Failure
) -> None:
    with pytest.raises(type(failure)) as raised, layered.workbench.locked():
        raise OSError(number, "refused", "/some/where")

    assert raised.value == failure
