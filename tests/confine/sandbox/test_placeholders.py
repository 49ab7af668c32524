"""What stands in for protected names, and that nothing of it is left."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.confine.failures import SandboxFailed, SandboxRequestUnfit
from holdfast.confine.policy import ProtectedPath, Protection
from holdfast.confine.sandbox.placeholders import Placeholders

NAMES = (".git/config", ".git/commondir", ".codex")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / ".git").mkdir(parents=True)
    return tmp_path / "workspace"


@pytest.fixture
def placeholders(tmp_path: Path) -> Placeholders:
    return Placeholders(tmp_path / "state")


def names_in(workspace: Path) -> set[str]:
    return {str(path.relative_to(workspace)) for path in workspace.rglob("*")}


def test_they_stand_while_they_are_needed(workspace: Path, placeholders: Placeholders) -> None:
    alive, kept = placeholders.hold({str(workspace): NAMES}, root=None)
    assert kept == [
        ProtectedPath(f"{workspace}/.codex", Protection.ABSENT),
        ProtectedPath(f"{workspace}/.git", Protection.PINNED),
        ProtectedPath(f"{workspace}/.git/commondir", Protection.ABSENT),
        ProtectedPath(f"{workspace}/.git/config", Protection.ABSENT),
    ]
    assert names_in(workspace) == {".git", ".git/config", ".git/commondir", ".codex"}
    assert (workspace / ".git" / "commondir").read_text() == ".\n"
    placeholders.release(alive)
    assert names_in(workspace) == {".git"}


@pytest.mark.parametrize("damaged", [b"{", b'{"\xff":1}'])
def test_what_was_spoiled_stops_nobody(
    workspace: Path, placeholders: Placeholders, tmp_path: Path, damaged: bytes
) -> None:
    (tmp_path / "state/placeholders").mkdir(parents=True)
    (tmp_path / "state/placeholders/made.json").write_bytes(damaged)
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    assert ".codex" in names_in(workspace)
    placeholders.release(alive)
    assert names_in(workspace) == {".git"}


def test_the_last_one_removes_them(workspace: Path, placeholders: Placeholders) -> None:
    first, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    second, kept = placeholders.hold({str(workspace): NAMES}, root=None)
    assert ProtectedPath(f"{workspace}/.codex", Protection.READ_ONLY) in kept
    placeholders.release(first)
    placeholders.clean()
    assert ".codex" in names_in(workspace)
    placeholders.release(second)
    assert names_in(workspace) == {".git"}


def test_what_stands_inside_of_another_is_removed_first(
    workspace: Path, placeholders: Placeholders
) -> None:
    """A second sandbox finds what stands in for a directory, and guards names in it."""
    (workspace / ".git").rmdir()
    first, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    second, kept = placeholders.hold({str(workspace): NAMES}, root=None)
    assert ProtectedPath(f"{workspace}/.git/config", Protection.ABSENT) in kept
    placeholders.release(first)
    placeholders.release(second)
    assert names_in(workspace) == set()


def test_a_process_that_still_runs_needs_them(workspace: Path, placeholders: Placeholders) -> None:
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    of_the_process = os.dup(alive)
    placeholders.release(alive)
    assert ".codex" in names_in(workspace)
    os.close(of_the_process)
    placeholders.clean()
    assert names_in(workspace) == {".git"}


def test_what_somebody_uses_stays(workspace: Path, placeholders: Placeholders) -> None:
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    (workspace / ".codex" / "mine").touch()
    (workspace / ".git" / "config").write_text("mine")
    placeholders.release(alive)
    assert names_in(workspace) == {".git", ".git/config", ".codex", ".codex/mine"}


def test_what_took_their_place_stays(workspace: Path, placeholders: Placeholders) -> None:
    alive, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    (workspace / ".codex").rmdir()
    (workspace / ".codex").mkdir()
    placeholders.release(alive)
    assert names_in(workspace) == {".git", ".codex"}


@pytest.mark.parametrize("steps", range(0, 40, 3))
def test_a_kill_at_any_moment_leaves_nothing_after_the_next_cleaning(
    workspace: Path, placeholders: Placeholders, steps: int
) -> None:
    pid = os.fork()
    if pid == 0:
        die_after(steps)
        placeholders.hold({str(workspace): NAMES}, root=None)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    placeholders.clean()
    assert names_in(workspace) == {".git"}


def die_after(steps: int) -> None:
    """Have the next calls that change something counted, and die before one of them."""
    left = [steps]

    def counted(event: str, _: tuple[object, ...]) -> None:
        if event in ("open", "os.mkdir", "os.rename", "os.remove", "fcntl.flock"):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(counted)


def test_a_directory_that_cannot_be_written_needs_none(tmp_path: Path) -> None:
    placeholders = Placeholders(tmp_path / "state")
    alive, kept = placeholders.hold({"/sys/kernel": (".codex",)}, root=None)
    placeholders.release(alive)
    assert kept == []


def test_what_appears_meanwhile_or_is_a_link_is_refused(
    workspace: Path, placeholders: Placeholders
) -> None:
    (workspace / ".codex").symlink_to("/nowhere")
    with pytest.raises(SandboxRequestUnfit):
        placeholders.hold({str(workspace): NAMES}, root=None)
    with pytest.raises(SandboxFailed):
        placeholders.hold({f"{workspace}/absent": (".codex",)}, root=None)


def test_seen_from_another_root(
    workspace: Path, tmp_path: Path, placeholders: Placeholders
) -> None:
    root = os.open(workspace, os.O_PATH | os.O_DIRECTORY)
    try:
        alive, kept = placeholders.hold({"/.git": ("inner",)}, root=root)
    finally:
        os.close(root)
    os.close(alive)
    assert kept == [ProtectedPath("/.git/inner", Protection.ABSENT)]
    assert names_in(workspace) == {".git", ".git/inner"}


def test_where_nothing_can_be_written_down_nothing_is_held(
    workspace: Path, placeholders: Placeholders, tmp_path: Path
) -> None:
    opened = os.listdir("/proc/self/fd")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            placeholders.hold({str(workspace): NAMES}, root=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert len(os.listdir("/proc/self/fd")) == len(opened)
    assert os.listdir(tmp_path / "state" / "placeholders") == ["lock"]
    assert names_in(workspace) == {".git"}


def test_what_could_not_be_removed_is_tried_again(
    workspace: Path, placeholders: Placeholders
) -> None:
    """Nor is what holds it forgotten, though it is not empty because of us alone."""
    (workspace / ".git").rmdir()
    first, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    second, _ = placeholders.hold({str(workspace): NAMES}, root=None)
    with immutable(workspace / ".git" / "config"):
        placeholders.release(first)
        placeholders.release(second)
        assert names_in(workspace) == {".git", ".git/config"}
    placeholders.clean()
    assert names_in(workspace) == set()


@contextmanager
def immutable(path: Path) -> Generator[None]:
    """What nobody can remove for a while."""
    tried = subprocess.run(["chattr", "+i", str(path)], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"nothing can be made immutable here: {tried.stderr!r}")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)
