"""A copy holds all that can be copied, shares no file with the project, and says what it lacks."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.draft.project_copy import copy_project
from holdfast.workbench.failures import ReflinkUnavailable, WorktreeUncovered
from holdfast.workbench.model import STAGE_PREFIX, UncoveredPath, UncoveredReason, ignore_progress
from holdfast.world.failures import DiskFull, DiskMissing, DiskOccupied
from tests.faults.mounts import missing_for_mounts, mounted
from tests.parts.ordinary_user import ordinary_directory
from tests.workbench.unprivileged import held_back

ODD = os.fsdecode(b"odd \xff\n\\name")
Found = tuple[int, int, int, bytes, dict[str, bytes]]


def fingerprint(directory: Path) -> dict[str, Found]:
    """All that a draft must have of a directory, by path."""
    found: dict[str, Found] = {}
    for path in (directory, *directory.rglob("*")):
        status = path.lstat()
        content = b""
        if path.is_symlink():
            content = os.fsencode(os.readlink(path))
        elif path.is_file():
            content = path.read_bytes()
        xattrs = {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
        owner = status.st_uid << 32 | status.st_gid
        name = str(path.relative_to(directory))
        found[name] = (status.st_mode, status.st_mtime_ns, owner, content, xattrs)
    return found


def made(base: Path) -> Path:
    """A project with everything that projects have."""
    project = base / "project"
    (project / "d" / "empty").mkdir(parents=True)
    (project / "d" / ODD).write_text("odd")
    (project / "program").write_text("#!/bin/sh\n")
    (project / "program").chmod(0o755)
    (project / "secret").write_text("secret")
    (project / "secret").chmod(0o600)
    (project / "read-only").mkdir()
    (project / "read-only" / "f").write_text("f")
    (project / "read-only" / "f").chmod(0o444)
    os.link(project / "program", project / "second name")
    (project / "link").symlink_to("d")
    (project / "dangling").symlink_to("/nowhere/\udcff")
    (project / ".git" / "hooks").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    if sys.platform == "linux":
        os.setxattr(project / "program", "user.mine", b"\0value")
        os.setxattr(project / "d", "user.mine", b"of a directory")
    for path in (project / "d" / ODD, project / "link", project / "d", project):
        os.utime(path, ns=(1, 1_234_567_890_123_456_789), follow_symlinks=False)
    (project / "read-only").chmod(0o555)
    return project


def test_everything_is_copied_and_nothing_is_shared(tmp_path: Path) -> None:
    project = made(tmp_path)
    before = fingerprint(project)

    assert copy_project(project, tmp_path / "copy", shares=False, on_progress=ignore_progress) == ()

    assert fingerprint(tmp_path / "copy") == before
    assert fingerprint(project) == before
    assert (tmp_path / "copy" / "program").stat().st_nlink == 1
    numbers = {path.lstat().st_ino for path in project.rglob("*")}
    assert not numbers & {path.lstat().st_ino for path in (tmp_path / "copy").rglob("*")}


def test_what_cannot_be_copied_is_listed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "d").mkdir(parents=True)
    os.mkfifo(project / "d" / "fifo")
    os.mknod(project / "socket", stat.S_IFSOCK | 0o600)
    (project / f"{STAGE_PREFIX}1").mkdir()

    left_out = copy_project(project, tmp_path / "copy", shares=False, on_progress=ignore_progress)

    assert set(left_out) == {
        UncoveredPath(RelativePath.of("d/fifo"), UncoveredReason.SPECIAL),
        UncoveredPath(RelativePath.of("socket"), UncoveredReason.SPECIAL),
    }
    assert sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "copy").rglob("*")) == [
        "copy/d"
    ]


def test_what_may_not_be_read_is_listed() -> None:
    with ordinary_directory() as base:
        base.chmod(0o777)
        with held_back():
            project = base / "project"
            (project / "closed" / "x").mkdir(parents=True)
            (project / "secret").write_text("")
            (project / "open").write_text("")
            (project / "secret").chmod(0)
            (project / "closed").chmod(0)

            left_out = copy_project(
                project, base / "copy", shares=False, on_progress=ignore_progress
            )

            assert set(left_out) == {
                UncoveredPath(RelativePath.of("secret"), UncoveredReason.UNREADABLE),
                UncoveredPath(RelativePath.of("closed"), UncoveredReason.UNREADABLE),
            }
            assert os.listdir(base / "copy") == ["open"]
            (project / "closed").chmod(0o700)


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
@pytest.mark.parametrize("words", [("-t", "tmpfs", "none"), ("--bind", "{base}/elsewhere")])
def test_a_mount_in_the_project_is_listed(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    options = [word.format(base=tmp_path) for word in words]
    with mounted(tmp_path / "project" / "data", *options):
        left_out = copy_project(
            tmp_path / "project", tmp_path / "copy", shares=False, on_progress=ignore_progress
        )

    assert left_out == (UncoveredPath(RelativePath.of("data"), UncoveredReason.MOUNTED),)


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "big").write_bytes(bytes(range(256)) * 8192)
    small = mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "none")
    with small as disk, pytest.raises(DiskFull):
        copy_project(tmp_path / "project", disk / "copy", shares=False, on_progress=ignore_progress)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_repository_that_would_be_shared_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    pointer = tmp_path / "project" / "sub" / ".git"
    if kind == "link":
        pointer.symlink_to("/somewhere/.git")
    else:
        pointer.write_text("gitdir: /somewhere/.git\n")

    with pytest.raises(WorktreeUncovered) as raised:
        copy_project(
            tmp_path / "project", tmp_path / "copy", shares=False, on_progress=ignore_progress
        )
    assert raised.value.outside == "/somewhere/.git"


def test_a_repository_that_is_copied_too_is_not_refused(tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "project" / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")

    assert (
        copy_project(
            tmp_path / "project", tmp_path / "copy", shares=False, on_progress=ignore_progress
        )
        == ()
    )


def test_no_project_and_no_room_are_named(tmp_path: Path) -> None:
    with pytest.raises(DiskMissing):
        copy_project(
            tmp_path / "none", tmp_path / "copy", shares=False, on_progress=ignore_progress
        )
    (tmp_path / "project").mkdir()
    (tmp_path / "copy").mkdir()
    with pytest.raises(DiskOccupied):
        copy_project(
            tmp_path / "project", tmp_path / "copy", shares=False, on_progress=ignore_progress
        )


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_where_nothing_can_be_shared_that_is_said(tmp_path: Path) -> None:
    project = made(tmp_path)
    with mounted(tmp_path / "other", "-t", "tmpfs", "none") as other:
        with pytest.raises(ReflinkUnavailable) as raised:
            copy_project(project, other / "copy", shares=True, on_progress=ignore_progress)
    assert raised.value.project == str(project)


@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
@pytest.mark.skipif(shutil.which("mkfs.xfs") is None, reason="there is no mkfs.xfs")
def test_what_can_be_shared_takes_no_space(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(320 << 20)
    subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", str(image)], check=True)
    with mounted(tmp_path / "disk", "-o", "loop", str(image)) as disk:
        project = made(disk)
        (project / "big").write_bytes(os.urandom(16 << 20))
        subprocess.run(["sync", "-f", str(disk)], check=True)
        before = fingerprint(project)
        free = shutil.disk_usage(disk).free

        assert copy_project(project, disk / "copy", shares=True, on_progress=ignore_progress) == ()

        assert fingerprint(disk / "copy") == before
        assert free - shutil.disk_usage(disk).free < 4 << 20
        with (disk / "copy" / "big").open("r+b") as file:
            file.write(b"changed")
        assert fingerprint(project) == before


def test_a_special_bit_is_kept(tmp_path: Path) -> None:
    (tmp_path / "project" / "sticky").mkdir(parents=True)
    (tmp_path / "project" / "sticky").chmod(0o2775)

    copy_project(tmp_path / "project", tmp_path / "copy", shares=False, on_progress=ignore_progress)

    assert stat.S_IMODE((tmp_path / "copy" / "sticky").stat().st_mode) == 0o2775


def test_what_stands_in_for_a_protected_name_is_not_copied(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in (".git", ".git/hooks", ".idea", ".vscode"):
        (project / name).mkdir(parents=True)
        (project / name).chmod(0o1755)
    for name in (".git/config", ".idea/mine"):
        (project / name).write_bytes(b"")
        (project / name).chmod(0o1644)

    assert copy_project(project, tmp_path / "copy", shares=False, on_progress=ignore_progress) == ()

    assert set(fingerprint(tmp_path / "copy")) == {".", ".idea", ".idea/mine"}


@pytest.mark.promise("W9")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_files_of_owners_that_are_not_mapped_here_are_copied(tmp_path: Path) -> None:
    """In a user namespace that does not map their owner, chown fails with EINVAL."""
    project = tmp_path / "project"
    (project / "d").mkdir(parents=True)
    (project / "d" / "f").write_text("theirs")
    (project / "link").symlink_to("d")
    for path in (project / "d" / "f", project / "link", project / "d"):
        os.chown(path, 4321, 4321, follow_symlinks=False)
    script = """
import sys
from pathlib import Path
from holdfast.workbench.draft.project_copy import copy_project
from holdfast.workbench.model import ignore_progress
print(copy_project(Path(sys.argv[1]), Path(sys.argv[2]), shares=False, on_progress=ignore_progress))
"""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", script]
    done = subprocess.run(
        [*command, project, tmp_path / "copy"], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("()\n", "")
    assert (tmp_path / "copy/d/f").read_text() == "theirs"
    assert os.readlink(tmp_path / "copy/link") == "d"
