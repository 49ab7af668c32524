"""A file is replaced whole or not at all, and in place only where nothing else is possible."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from holdfast.confine.place.files import MergedRootFiles, NamespaceFiles
from holdfast.exec.server.file_replacement import Replacement
from tests.faults.mounts import missing_for_mounts, mounted

pytestmark = pytest.mark.promise("W7")
if sys.platform != "linux":
    pytest.skip("there is no server here", allow_module_level=True)

NEW = b"new content"
as_root = pytest.mark.skipif(missing_for_mounts() is not None, reason="only root may")


@pytest.fixture(params=[True, False], ids=["tmpfile", "named"])
def machine(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MergedRootFiles]:
    if not request.param:  # as a file system without O_TMPFILE
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY | os.O_CREAT | os.O_RDWR)
    with closing(MergedRootFiles.on_machine()) as files:
        yield files


def replaced(
    files: MergedRootFiles | NamespaceFiles, path: Path, data: bytes = NEW, mode: int | None = None
) -> bool:
    """Replace a file, and say whether that was done in place."""
    with closing(Replacement(files, os.fsencode(path), mode=mode)) as new:
        new.write(data, at=0)
        new.commit()
    return new.is_in_place


def dropped(files: MergedRootFiles, path: Path) -> None:
    with closing(Replacement(files, os.fsencode(path))) as new:
        new.write(NEW, at=0)


def test_mode_owner_and_attributes_stay(tmp_path: Path, machine: MergedRootFiles) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o2751)
    if os.geteuid() == 0:
        os.chown(file, 1234, 4321)
        file.chmod(0o2751)
    with suppress(OSError):
        os.setxattr(file, "user.word", b"kept")
    before, attributes = file.stat(), os.listxattr(file)

    assert replaced(machine, file) is False

    after = file.stat()
    assert file.read_bytes() == NEW
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert stat.S_IMODE(after.st_mode) == (0o2751 if os.geteuid() == 0 else 0o751)
    assert os.listxattr(file) == attributes
    assert os.listdir(tmp_path) == ["file"]


def test_a_new_file_has_the_mode_that_any_program_would_give_it(
    tmp_path: Path, machine: MergedRootFiles
) -> None:
    (tmp_path / "plain").touch()
    assert replaced(machine, tmp_path / "file") is False
    assert replaced(machine, tmp_path / "other", mode=0o751) is False

    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "file", "other")]
    assert modes == [modes[0], modes[0], 0o751]
    assert (tmp_path / "file").read_bytes() == NEW


@pytest.mark.parametrize("target", ["file", "sub/deep", "missing"])
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_link_stays_and_leads_to_the_new_content(
    tmp_path: Path, machine: MergedRootFiles, target: str, is_absolute: bool
) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("file", "sub/deep"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / target if is_absolute else target)

    assert replaced(machine, tmp_path / "link") is False

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / target).read_bytes() == NEW
    assert not (tmp_path / target).is_symlink()


def test_all_hard_links_have_the_new_content(tmp_path: Path, machine: MergedRootFiles) -> None:
    (tmp_path / "file").write_bytes(b"old content that is longer than the new one")
    os.link(tmp_path / "file", tmp_path / "other")

    assert replaced(machine, tmp_path / "file") is True

    assert (tmp_path / "other").read_bytes() == NEW


def test_what_is_skipped_in_place_reads_as_zeros(tmp_path: Path, machine: MergedRootFiles) -> None:
    (tmp_path / "file").write_bytes(b"x" * 20)
    os.link(tmp_path / "file", tmp_path / "other")
    with closing(Replacement(machine, os.fsencode(tmp_path / "file"))) as new:
        new.write(b"two", at=5)
        new.write(b"1", at=0)
        new.commit()

    assert (tmp_path / "other").read_bytes() == b"1\0\0\0\0two"


@as_root
def test_a_mounted_file_is_written_in_place(tmp_path: Path, machine: MergedRootFiles) -> None:
    (tmp_path / "source").write_bytes(b"old content that is longer than the new one")
    (tmp_path / "file").touch()
    with mounted_file(tmp_path):
        assert replaced(machine, tmp_path / "file") is True
        assert (tmp_path / "file").read_bytes() == NEW

    assert (tmp_path / "source").read_bytes() == NEW


@contextmanager
def mounted_file(root: Path) -> Generator[None]:
    subprocess.run(["mount", "--bind", root / "source", root / "file"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", root / "file"], check=True)


def test_a_sandbox_that_grants_one_name_alone_has_it_written_in_place(
    tmp_path: Path, machine: MergedRootFiles
) -> None:
    granted = {os.fsencode(tmp_path / name) for name in ("file", "new")}

    def gate(path: bytes, writes: bool) -> None:
        if writes and path not in granted:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    files = NamespaceFiles(machine, gate)
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "way-out").symlink_to("other")
    (tmp_path / "other").write_bytes(b"other")

    assert replaced(files, tmp_path / "file") is True
    assert replaced(files, tmp_path / "new") is False
    with pytest.raises(PermissionError):
        replaced(files, tmp_path / "way-out")
    with pytest.raises(PermissionError):
        replaced(files, tmp_path / "missing")

    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert contents == {"file": NEW, "new": NEW, "way-out": b"other", "other": b"other"}


@pytest.mark.parametrize("name", ["file", "link", "missing", "dangling"])
def test_what_is_not_committed_has_not_happened(
    tmp_path: Path, machine: MergedRootFiles, name: str
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    before = sorted(os.listdir(tmp_path))

    dropped(machine, tmp_path / name)

    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "file").read_bytes() == b"old"


def test_no_link_leads_out_of_a_root(tmp_path: Path) -> None:
    (tmp_path / "root" / "way").mkdir(parents=True)
    (tmp_path / "outside").write_bytes(b"outside")
    (tmp_path / "root" / "up").symlink_to("../outside")
    (tmp_path / "root" / "absolute").symlink_to("/outside")
    root = os.open(tmp_path / "root", os.O_RDONLY | os.O_DIRECTORY)
    with closing(MergedRootFiles(root)) as files:
        for name in (b"/up", b"/absolute", b"/way/../../outside"):
            with closing(Replacement(files, name)) as new:
                new.write(NEW, at=0)
                new.commit()

    assert (tmp_path / "outside").read_bytes() == b"outside"
    assert (tmp_path / "root" / "outside").read_bytes() == NEW


@as_root
@pytest.mark.parametrize("has_links", [False, True], ids=["beside", "in place"])
def test_a_full_disk_leaves_the_old_file_as_it_was(
    tmp_path: Path, machine: MergedRootFiles, has_links: bool
) -> None:
    old = b"old" * 3000
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=64k", "tmpfs") as root:
        (root / "file").write_bytes(old)
        if has_links:
            os.link(root / "file", root / "other")
        before = sorted(os.listdir(root))
        for path in (root / "file", root / "new"):
            with pytest.raises(OSError, match="No space left"):
                replaced(machine, path, bytes(400_000))

        assert (root / "file").read_bytes() == old
        assert sorted(os.listdir(root)) == before
        assert replaced(machine, root / "file") is has_links
        assert (root / "file").read_bytes() == NEW


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a file of another")
def test_a_file_whose_owner_a_new_one_cannot_get_is_written_in_place(
    tmp_path: Path, machine: MergedRootFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: int, _uid: int, _gid: int) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    file = tmp_path / "file"
    file.write_bytes(b"old")
    os.chown(file, 1234, 1234)
    monkeypatch.setattr(os, "fchown", refuse)

    assert replaced(machine, file) is True

    assert file.read_bytes() == NEW
    assert os.listdir(tmp_path) == ["file"]
