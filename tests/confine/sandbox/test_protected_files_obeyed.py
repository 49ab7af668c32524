"""No command that is shut in can have git, or another program, run something later."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.confine.sandbox.protected_files import ProtectedFiles, obeyed_names
from tests.confine.shutting import Stage, stage

pytestmark = pytest.mark.promise("W13")
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))
} | {"GIT_CONFIG_NOSYSTEM": "1"}
NEEDS_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = stage(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # git reads configuration there
    shutil.rmtree(made.workspace / ".git", ignore_errors=True)
    return made


def names(here: Stage) -> tuple[set[str], tuple[str, ...]]:
    found = obeyed_names(str(here.workspace), root=None)
    return set(found.names), found.unkept


def git(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the person's git does there, by its own settings alone."""
    return subprocess.run(
        ["git", *words],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **IDENTITY},
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


def test_what_shells_and_programs_obey_in_a_home_is_kept(here: Stage) -> None:
    (here.workspace / ".ssh").mkdir()
    for name in (".bashrc", ".profile", ".zshenv", ".gitconfig", ".ssh/authorized_keys"):
        (here.workspace / name).write_text("as it was\n")
    script = (
        "for each in .bashrc .profile .zshenv .gitconfig .ssh/authorized_keys .ssh/rc; do"
        " echo changed > $each; mv $each moved; rm -f moved; done;"
        " mv .ssh moved; rm -rf moved; echo x > free"
    )
    here.run("/bin/sh", "-c", script)

    assert {
        str(each.relative_to(here.workspace)): each.read_text()
        for each in here.workspace.rglob("*")
        if each.is_file() and each.name != "file"
    } == {
        ".bashrc": "as it was\n",
        ".profile": "as it was\n",
        ".zshenv": "as it was\n",
        ".gitconfig": "as it was\n",
        ".ssh/authorized_keys": "as it was\n",
        "free": "x\n",
    }


def test_what_a_configuration_names_is_kept(here: Stage) -> None:
    repository(here, "[core]\nhooksPath = .githooks\n[include]\npath = ../a.inc\npath = /etc/x\n")
    (here.workspace / ".githooks").mkdir()
    (here.workspace / "a.inc").write_text("[include]\npath = b.inc\n")

    found = obeyed_names(str(here.workspace), root=None)
    assert (set(found.names), set(found.files)) == (
        {".githooks", "a.inc", "b.inc"},
        {"a.inc", "b.inc"},
    )
    assert found.unkept == ()


def test_in_a_place_nothing_stands_in_for_what_a_configuration_names(here: Stage) -> None:
    """It would be seen as a change of the draft."""
    repository(here, "[core]\nhooksPath = .githooks\n")
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = obeyed_names(str(here.workspace), root=root)
    finally:
        os.close(root)
    told = f"{here.workspace}/.githooks is what git obeys (core.hooksPath), and could be made"
    assert found == ProtectedFiles((), (), (told,))


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000, "\udcff", "a\x01b", "."])
def test_odd_names_in_a_configuration_keep_nobody_from_working(here: Stage, name: str) -> None:
    config = f"[core]\nhooksPath = {name}\n".encode("utf-8", "surrogateescape")
    repository(here)
    (here.workspace / ".git/config").write_bytes(config)
    assert here.run("/bin/sh", "-c", "echo done").said == "done\n"


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


HOOK = "#!/bin/sh\ntouch $OWNED\n"
CONFIG = "[core]\n\thooksPath = "


def by_repository(here: Stage) -> Path:
    return made_repository(here.workspace, "hooks.d")


def by_nested_repository(here: Stage) -> Path:
    made_repository(here.workspace)
    return made_repository(here.workspace / "a/nested", "hooks.d")


def by_repository_above(here: Stage) -> Path:
    made_repository(here.workspace.parent, "workspace/hooks.d")
    return here.workspace


def by_worktree(here: Stage) -> Path:
    shutil.rmtree(here.workspace)
    main = made_repository(here.workspace.parent / "main", "hooks.d")
    assert git(main, "commit", "--allow-empty", "-m", "1").returncode == 0
    assert git(main, "worktree", "add", str(here.workspace)).returncode == 0
    return here.workspace


def by_home(here: Stage) -> Path:
    return made_repository(here.workspace, "~/workspace/hooks.d")


def by_the_person(here: Stage) -> Path:
    made_repository(here.workspace)
    (here.workspace.parent / ".gitconfig").write_text(f"{CONFIG}hooks.d\n")
    return here.workspace


def by_inclusion(here: Stage) -> Path:
    made_repository(here.workspace)
    git(here.workspace, "config", "include.path", "../more")
    (here.workspace / "more").write_text(f"{CONFIG}hooks.d\n")
    return here.workspace


def by_absent_inclusion(here: Stage) -> Path:
    made_repository(here.workspace)
    git(here.workspace, "config", "include.path", "../more")
    return here.workspace


def made_repository(directory: Path, hooks: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    assert git(directory, "init").returncode == 0
    if hooks:
        assert git(directory, "config", "core.hooksPath", hooks).returncode == 0
    return directory


WAYS = [
    by_repository,
    by_nested_repository,
    by_repository_above,
    by_worktree,
    by_home,
    by_the_person,
    by_inclusion,
    by_absent_inclusion,
]


@NEEDS_GIT
@pytest.mark.parametrize("is_there", [True, False], ids=["there", "absent"])
@pytest.mark.parametrize("way", WAYS)
def test_no_hook_can_be_made_where_git_looks_for_one(
    here: Stage, tmp_path: Path, way: Callable[[Stage], Path], is_there: bool
) -> None:
    """However git comes to look there; and nothing that stands in for it stays."""
    worktree, owned = way(here), tmp_path / "owned"
    hooks = worktree / "hooks.d"
    if is_there:
        hooks.mkdir()
    before = sorted(os.listdir(worktree))
    hook = HOOK.replace("$OWNED", str(owned)).replace("\n", "\\n")
    script = (
        f"cd {worktree}; [ -s more ] || printf '[core]\\nhooksPath = hooks.d\\n' > more; "
        f"mkdir -p hooks.d; printf '{hook}' > hooks.d/pre-commit; chmod +x hooks.d/pre-commit; true"
    )

    here.run("/bin/sh", "-c", script)
    after = sorted(os.listdir(worktree))
    done = git(worktree, "commit", "--allow-empty", "-m", "2")
    assert done.returncode == 0, done.stderr
    assert not owned.exists()
    assert set(after) - set(before) <= ({"more"} if way is not by_absent_inclusion else {"hooks.d"})

    subprocess.run(["/bin/sh", "-c", script], cwd=here.workspace, check=True)
    git(worktree, "commit", "--allow-empty", "-m", "3")
    assert owned.exists()  # so it is where git looks
