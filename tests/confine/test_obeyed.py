"""No command that is shut in can have git, or another program, run something later."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.confine.obeyed import obeyed_names
from tests.confine.shutting import Stage, stage

pytestmark = pytest.mark.promise("W13")
NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@pytest.fixture
def here(tmp_path: Path) -> Stage:
    made = stage(tmp_path)
    shutil.rmtree(made.workspace / ".git", ignore_errors=True)
    return made


def names(here: Stage) -> tuple[set[str], tuple[str, ...]]:
    found, unkept = obeyed_names(str(here.workspace), root=None)
    return set(found), unkept


def git(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the person's git does there, by its own settings alone."""
    return subprocess.run(
        ["git", *words],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def repository(here: Stage, config: str = "") -> None:
    (here.workspace / ".git/objects").mkdir(parents=True)
    (here.workspace / ".git/refs").mkdir()
    (here.workspace / ".git/hooks").mkdir()
    (here.workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (here.workspace / ".git/config").write_text(config)


def test_what_programs_obey_is_kept_where_it_is(here: Stage) -> None:
    repository(here)
    assert names(here) == (set(), ())
    (here.workspace / ".npmrc").touch()
    (here.workspace / ".cargo").mkdir()
    (here.workspace / ".cargo/config.toml").touch()
    os.link(here.workspace / ".npmrc", here.workspace / "second")

    found, unkept = names(here)
    assert found == {".cargo/config.toml"}
    assert unkept == (
        f"{here.workspace}/.npmrc is protected, but has a second name by which it could be changed",
    )


def test_what_a_configuration_names_is_kept(here: Stage) -> None:
    repository(here, "[core]\nhooksPath = .githooks\n[include]\npath = ../a.inc\npath = /etc/x\n")
    (here.workspace / ".githooks").mkdir()
    (here.workspace / "a.inc").write_text("[include]\npath = b.inc\n")

    assert names(here) == (
        {".githooks", "a.inc"},
        (f"{here.workspace}/b.inc is what git obeys (include.path), and could be made",),
    )


def test_no_name_of_a_bare_repository_can_be_made(here: Stage) -> None:
    assert names(here)[0] == {"HEAD"}
    for name, expected in (("HEAD", "objects"), ("objects", "refs")):
        (here.workspace / name).mkdir()
        assert names(here)[0] == {expected}
    (here.workspace / "refs").mkdir()
    (here.workspace / "HEAD").rmdir()
    (here.workspace / "HEAD").write_text("ref: refs/heads/main\n")
    (here.workspace / "config").touch()
    assert names(here)[0] == {"HEAD", "config"}


def test_below_a_repository_nothing_is_called_head(here: Stage) -> None:
    (here.workspace.parent / ".git").mkdir()
    assert names(here)[0] == {"objects"}


MAKE_BARE = """
mkdir -p objects refs hooks
echo 'ref: refs/heads/main' > HEAD
printf '[alias]\\n\\tst = "!touch owned"\\n' > config
true
"""


@NEEDS_GIT
def test_a_directory_is_not_made_a_repository(here: Stage) -> None:
    here.run("/bin/sh", "-c", MAKE_BARE)
    git(here.workspace, "st")
    assert not (here.workspace / "owned").exists()
    assert "HEAD" not in os.listdir(here.workspace)

    subprocess.run(["/bin/sh", "-c", MAKE_BARE], cwd=here.workspace, check=True)
    git(here.workspace, "st")
    assert (here.workspace / "owned").exists()  # so it is what it would have been


@NEEDS_GIT
def test_hooks_elsewhere_and_further_configuration_stay(here: Stage) -> None:
    repository(here, "[core]\nhooksPath = .githooks\n[include]\npath = ../a.inc\n")
    (here.workspace / ".githooks").mkdir()
    (here.workspace / "a.inc").touch()
    done = here.run(
        "/bin/sh",
        "-c",
        "echo x > .githooks/pre-commit; echo x > a.inc; mv .githooks moved; echo x > free",
    )

    assert done.complained
    assert sorted(os.listdir(here.workspace / ".githooks")) == []
    assert (here.workspace / "a.inc").read_text() == ""
    assert (here.workspace / "free").exists()
