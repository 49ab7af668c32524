"""An index of git is read as git writes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workbench.git.ignore_rules import TrackedPaths, tracked_in

NAMES = [b"a", b"d/" + b"x" * 120, b"d/y", "zwölf".encode(), b"\xff", b"l" + b"o" * 200]


def git(root: Path, *words: str, stdin: bytes = b"") -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *words], cwd=root, env=environment, input=stdin, check=True, capture_output=True
    ).stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version(tmp_path: Path, version: int, form: str) -> None:
    git(tmp_path, "init", "-q", f"--object-format={form}")
    for name in NAMES:
        path = os.path.join(os.fsencode(tmp_path), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb"):
            pass
    git(tmp_path, "update-index", "--index-version", str(version))
    git(tmp_path, "add", ".")
    if version == 3:
        (tmp_path / "new").touch()
        git(tmp_path, "add", "-N", "new")  # which needs extended flags
    names = frozenset(each for each in git(tmp_path, "ls-files", "-z").split(b"\0") if each)

    index = (tmp_path / ".git" / "index").read_bytes()
    assert index[7] == version
    assert tracked_in(index) == TrackedPaths(names)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_split_index_names_the_other_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").touch()
    git(tmp_path, "add", "a")
    git(tmp_path, "update-index", "--split-index")

    found = tracked_in((tmp_path / ".git" / "index").read_bytes())
    assert found is not None
    shared = tracked_in((tmp_path / ".git" / f"sharedindex.{found.shared}").read_bytes())
    assert shared == TrackedPaths(frozenset({b"a"}))


@given(st.binary(max_size=300).map(lambda rest: b"DIRC\0\0\0\2" + rest))
def test_no_bytes_do_harm(data: bytes) -> None:
    tracked_in(data)
    assert tracked_in(data[:11]) is None or len(data) >= 12


def test_what_is_no_index_is_told_apart() -> None:
    assert tracked_in(b"") is None
    assert tracked_in(b"DIRC\0\0\0\7\0\0\0\0") is None
