"""The stage holds what will be in the project, and goes without a trace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.transaction.atomic_rename import NameAt
from holdfast.workbench.transaction.stage import StageDirectory, adjust
from tests.faults.mounts import missing_for_mounts, mounted
from tests.workbench.grounds import Thing, directory, file, link, read
from tests.workbench.unprivileged import held_back

WHOEVER = (-1, -1)
MISSING = missing_for_mounts()


@pytest.fixture
def stage(project: Path) -> Iterator[StageDirectory]:
    root = os.open(project, os.O_RDONLY)
    made = StageDirectory(root, "stage")
    yield made
    made.close()
    os.close(root)


def entry(thing: Thing) -> PathEntry:
    kind = EntryKind(thing.kind)
    xattrs = tuple((name.encode(), value) for name, value in thing.xattrs)
    target = thing.data if kind is EntryKind.LINK else b""
    return PathEntry(kind, thing.mode, target=target, xattrs=xattrs, mtime_ns=thing.mtime_ns)


def test_what_is_made_is_there_as_it_will_be(stage: StageDirectory, project: Path) -> None:
    things = {
        b"0": file(b"1" * 5_000, 0o4751, note=b"x"),
        b"1": link(b"\xff/.."),
        b"2": directory(0o2711, note=b"y"),
    }
    stage.make()
    stage.write_file(stage.slot(0), entry(things[b"0"]), [b"1" * 2_000, b"1" * 3_000], WHOEVER)
    stage.make_link(stage.slot(1), entry(things[b"1"]), WHOEVER)
    stage.make_directory(stage.slot(2), entry(things[b"2"]), WHOEVER)
    stage.sync()

    assert read(project / "stage") == things
    assert [slot.name for slot in stage.slots()] == [b"0", b"1", b"2"]
    assert os.stat(project / "stage" / "2").st_mtime_ns == things[b"2"].mtime_ns


@pytest.mark.promise("W9")
@pytest.mark.parametrize("tail", [b"", b"end"])
def test_runs_of_zeros_become_holes(stage: StageDirectory, project: Path, tail: bytes) -> None:
    empty = bytes(1 << 20)
    stage.make()
    pieces = [b"head", empty, empty + b"middle", empty, tail]
    stage.write_file(stage.slot(0), PathEntry(EntryKind.FILE, 0o644), pieces, WHOEVER)
    stage.sync()

    made = project / "stage" / "0"
    assert made.read_bytes() == b"".join(pieces)
    assert made.stat().st_blocks * 512 < 1 << 20


def test_more_files_wait_for_their_sync_than_are_open(stage: StageDirectory, project: Path) -> None:
    stage.make()
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    for number in range(300):
        stage.write_file(stage.slot(number), entry(file(b"")), [], WHOEVER)
        most = max(most, len(os.listdir("/proc/self/fd")))
    stage.sync()

    assert most <= before + 128
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(os.listdir(project / "stage")) == 300


def test_a_time_that_nobody_knows_is_now(stage: StageDirectory, project: Path) -> None:
    stage.make()
    stage.write_file(stage.slot(0), PathEntry(EntryKind.FILE, 0o644), [], WHOEVER)
    stage.make_link(stage.slot(1), PathEntry(EntryKind.LINK, 0o777, target=b"x"), WHOEVER)

    now = os.stat(project / "stage").st_mtime_ns
    for name in ("0", "1"):
        assert abs(os.lstat(project / "stage" / name).st_mtime_ns - now) < 60e9


@pytest.mark.parametrize("there", ["nothing", "file", "link", "full"])
def test_whatever_has_its_name_is_replaced(
    stage: StageDirectory, project: Path, there: str
) -> None:
    at = project / "stage"
    if there == "file":
        at.touch()
    elif there == "link":
        at.symlink_to(project.parent)
    elif there == "full":
        (at / "0" / "deep").mkdir(parents=True)
        (at / "0" / "deep").chmod(0)
    assert stage.exists() is (there != "nothing")

    stage.make()

    assert (os.listdir(at), stage.exists()) == ([], True)
    stage.drop()
    stage.drop()
    assert os.listdir(project) == []
    assert project.parent.is_dir()


def test_what_is_made_on_it_inherits_nothing(stage: StageDirectory, project: Path) -> None:
    acl = bytes.fromhex(  # rwx for the owner and for user 1234, nothing for anybody else
        "02000000 01000700ffffffff 02000700d2040000 04000000ffffffff"
        "10000700ffffffff 20000000ffffffff"
    )
    try:
        os.setxattr(project, "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("this file system has no access control lists")
    stage.make()
    stage.write_file(stage.slot(0), entry(file(b"1")), [b"1"], WHOEVER)

    assert read(project / "stage") == {b"0": file(b"1")}


def test_names_can_change_places_here(stage: StageDirectory, project: Path) -> None:
    stage.make()
    stage.try_exchange()

    assert os.listdir(project / "stage") == []


def test_without_a_stage_there_is_no_slot(stage: StageDirectory) -> None:
    with pytest.raises(FileNotFoundError):
        stage.slot(0)
    assert stage.slots() == []
    stage.sync()


@pytest.mark.skipif(MISSING is not None, reason=f"nothing can be mounted: {MISSING}")
def test_what_a_file_system_cannot_keep_is_refused(tmp_path: Path) -> None:
    """FAT has one mode for all files."""
    image = tmp_path / "image"
    image.write_bytes(bytes(4 * 2**20))
    try:
        subprocess.run(["mkfs.vfat", str(image)], check=True, capture_output=True)
        with mounted(tmp_path / "fat", "-t", "vfat", "-o", "loop", str(image)) as fat:
            root = os.open(fat, os.O_RDONLY)
            stage = StageDirectory(root, "stage")
            stage.make()
            with pytest.raises(OSError):
                stage.write_file(stage.slot(0), entry(file(b"1", 0o751)), [b"1"], WHOEVER)
            stage.close()
            os.close(root)
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("there is no FAT here")


def test_what_could_not_be_read_back_is_refused(stage: StageDirectory, project: Path) -> None:
    project.chmod(0o777)
    with held_back():
        stage.make()
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        with pytest.raises(PermissionError):
            stage.write_file(stage.slot(0), entry(file(b"1", 0o200)), [b"1"], WHOEVER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (directory(0o755), directory(0o300)),
        (directory(0o300), directory(0o1777)),
        (directory(0o755, a=b"1", b=b"2"), directory(0o755, b=b"3", c=b"")),
    ],
)
def test_a_directory_is_adjusted(project: Path, before: Thing, after: Thing) -> None:
    at = project / "d"
    at.mkdir()
    for name, value in before.xattrs:
        os.setxattr(at, name, value)
    at.chmod(before.mode)
    descriptor = os.open(at, os.O_PATH)
    adjust(descriptor, entry(before), entry(after))
    os.close(descriptor)

    assert read(project) == {b"d": after}


def test_a_slot_is_a_name_on_the_stage(stage: StageDirectory) -> None:
    stage.make()

    assert stage.slot(12) == NameAt(stage.slot(3).directory, b"12")
