"""Repositories inside of a workspace are found, level by level, and what is missed is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.confine.policy import PROTECTED, SandboxPolicy
from holdfast.confine.sandbox.protected_files import (
    REPOSITORIES_MAX,
    Nested,
    find_nested,
    wanted_names,
)
from tests.confine.shutting import Stage, stage

GIT = (".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in (".git", "a/.git", "b/c/.git", "node_modules/d/.git", "hidden/e/.git"):
        (tmp_path / "top" / name).mkdir(parents=True)
    (tmp_path / "top/b/sub").mkdir()
    (tmp_path / "top/b/sub/.git").write_text("gitdir: elsewhere\n")
    (tmp_path / "top/link").symlink_to("a")
    return tmp_path / "top"


def found(top: Path, *, most: int = 500) -> Nested:
    return find_nested(str(top), root=None, skipped=(f"{top}/hidden",), most=most)


def test_all_are_found_but_those_behind_links_and_in_packages(top: Path) -> None:
    repositories, is_whole = found(top).repositories, found(top).is_whole
    assert (sorted(repositories), is_whole) == (["a", "b/c", "b/sub"], True)


def test_what_comes_and_goes_is_noticed_the_next_time(top: Path) -> None:
    for each in (top, *top.rglob("*")):
        os.utime(each, (1, 1), follow_symlinks=False)  # long settled
    assert found(top) == found(top)
    (top / "b/new/.git").mkdir(parents=True)
    (top / "a/.git").rmdir()
    assert sorted(found(top).repositories) == ["b/c", "b/new", "b/sub"]


def test_so_many_directories_and_no_more(top: Path) -> None:
    assert found(top, most=1) == Nested((), is_whole=False)
    assert not found(top, most=3).is_whole
    assert found(top, most=6).is_whole


def test_another_root_has_its_own(top: Path, tmp_path: Path) -> None:
    root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        nested = find_nested("/top", root=root)
    finally:
        os.close(root)
    assert sorted(nested.repositories) == ["a", "b/c", "b/sub", "hidden/e"]


def wanted(
    here: Stage, *, protected: tuple[str, ...] = PROTECTED, hidden: tuple[str, ...] = ()
) -> tuple[set[str], tuple[str, ...]]:
    policy = SandboxPolicy(writable=(str(here.workspace),), protected=protected, hidden=hidden)
    found = wanted_names(policy, state=here.state, root=None)
    return set(found.names[str(here.workspace)]) - {*PROTECTED, "HEAD"}, found.unkept


def test_git_is_kept_whole_there_and_others_as_they_are(tmp_path: Path) -> None:
    here = stage(tmp_path)
    (here.workspace / "x/.git").mkdir(parents=True)
    (here.workspace / "x/.git/modules").mkdir()
    (here.workspace / "x/.envrc").touch()

    assert wanted(here) == ({f"x/{name}" for name in (*GIT, ".git/modules", ".envrc")}, ())
    assert wanted(here, protected=(".envrc",)) == (set(), ())
    assert wanted(here, hidden=(f"{here.workspace}/x",)) == (set(), ())


def test_what_cannot_be_kept_is_said_and_stops_nobody(tmp_path: Path) -> None:
    here = stage(tmp_path)
    (here.workspace / "x").mkdir()
    (here.workspace / "x/.git").symlink_to(here.outside)
    for number in range(REPOSITORIES_MAX + 1):
        (here.workspace / f"y{number}/.git").mkdir(parents=True)
    names, unkept = wanted(here)

    assert len(names) == REPOSITORIES_MAX * len(GIT)
    assert {reason.replace(str(here.workspace), "w") for reason in unkept} <= {
        "w/x/.git is protected, but as a symbolic link it could be replaced",
        "w has more than 16 repositories in it",
    }
    assert unkept


def test_what_cannot_be_kept_is_said_in_text(tmp_path: Path) -> None:
    here = stage(tmp_path)
    odd = here.workspace / os.fsdecode(b"x\xff")
    odd.mkdir()
    (odd / ".git").symlink_to(here.outside)

    assert wanted(here)[1] == (
        f"{here.workspace}/x\\xff/.git is protected, but as a symbolic link it could be replaced",
    )


def test_one_that_was_kept_cannot_be_crowded_out(tmp_path: Path) -> None:
    here = stage(tmp_path)
    (here.workspace / "deep/deeper/x/.git").mkdir(parents=True)
    expected = {f"deep/deeper/x/{name}" for name in GIT}
    assert wanted(here) == (expected, ())
    for number in range(600):
        (here.workspace / f"a{number}").mkdir()

    names, unkept = wanted(here)
    assert names == expected
    assert [reason.rpartition("has")[2] for reason in unkept] == [
        " too many directories to find all repositories in it"
    ]
    (here.workspace / "deep/deeper/x/.git").rmdir()
    assert wanted(here)[0] == set()


@pytest.mark.parametrize("damaged", [b"{", b'{"\xff":[]}'])
def test_what_was_remembered_and_spoiled_stops_nobody(tmp_path: Path, damaged: bytes) -> None:
    here = stage(tmp_path)
    (here.workspace / "x/.git").mkdir(parents=True)
    here.state.mkdir(parents=True, exist_ok=True)
    (here.state / "nested.json").write_bytes(damaged)

    assert wanted(here) == ({f"x/{name}" for name in GIT}, ())
