"""What stands at a path is said by its content, and whatever is not known is not claimed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.store.store import CheckpointSource, Store
from holdfast.workbench.transaction.path_state import (
    ParentCache,
    inspect_path,
    inspect_with_stat,
    open_directory,
)
from tests.workbench.grounds import directory, file, link, plant
from tests.workbench.unprivileged import held_back


@pytest.fixture
def root(project: Path) -> Iterator[int]:
    descriptor = os.open(project, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


TREE = {
    b"file": file(b"1"),
    b"empty": file(b"", 0o600),
    b"large": file(bytes(range(256)) * 40_000),
    b"marked": file(b"2", 0o4755, note=b"\0\xff"),
    b"link": link(b"\xff/.."),
    b"d": directory(0o711, note=b"x"),
    b"d/\xff\n": file(b"deep"),
}


def test_it_says_the_same_as_a_checkpoint(project: Path, root: int, tmp_path: Path) -> None:
    plant(project, TREE)
    with Store.open(tmp_path / "state") as store:
        checkpoint = store.checkpoint(CheckpointSource(project))
        for path in map(RelativePath.of, TREE):
            node = store.node(checkpoint, path)
            assert node is not None
            kept, found = node.entry(), inspect_path(root, path)
            assert found == kept
            assert found is not None
            assert found.mtime_ns == kept.mtime_ns == TREE[path.raw].mtime_ns
            assert found.is_directory or found.size == kept.size


@pytest.mark.parametrize(
    "path", ["none", "none/below", "file/below", "away/x", "d/away/x", "n" * 255 + "/" + "n" * 255]
)
def test_where_no_plain_way_leads_there_is_nothing(project: Path, root: int, path: str) -> None:
    plant(project, {**TREE, b"away": link(b".."), b"d/away": link(b"..")})
    (project.parent / "x").touch()

    assert inspect_path(root, RelativePath.of(path)) is None


def test_what_is_no_file_is_not_opened(project: Path, root: int) -> None:
    os.mkfifo(project / "fifo", 0o640)
    os.mknod(project / "socket", stat.S_IFSOCK | 0o700)

    assert inspect_path(root, RelativePath.of("fifo")) == PathEntry(EntryKind.SPECIAL, 0o640)
    assert inspect_path(root, RelativePath.of("socket")) == PathEntry(EntryKind.SPECIAL, 0o700)


def test_what_cannot_be_read_is_like_nothing_else(project: Path, root: int) -> None:
    plant(project, {b"file": file(b"1", 0o000), b"d": directory(0o300)})
    with held_back():
        assert inspect_path(root, RelativePath.of("file")) == PathEntry(EntryKind.SPECIAL, 0)
        assert inspect_path(root, RelativePath.of("d")) == PathEntry(EntryKind.DIRECTORY, 0o300)


def test_it_tells_what_the_system_says(project: Path, root: int) -> None:
    plant(project, TREE)

    for path in TREE:
        seen = inspect_with_stat(root, path)
        assert seen is not None
        assert os.path.samestat(seen[1], os.lstat(os.fsencode(project) + b"/" + path))


def test_a_directory_is_held_for_a_moment(project: Path, root: int) -> None:
    plant(project, TREE)
    count = len(os.listdir("/proc/self/fd"))

    for path in (None, RelativePath.of("d")):
        for flags in ([], [os.O_RDONLY | os.O_DIRECTORY]):
            with open_directory(root, path, *flags) as descriptor:
                assert os.path.samestat(
                    os.fstat(descriptor), os.stat(project / (str(path) if path else "."))
                )
    with pytest.raises(NotADirectoryError), open_directory(root, RelativePath.of("file")):
        pass
    assert len(os.listdir("/proc/self/fd")) == count


def test_the_last_directory_stays_open_and_no_link_leads_to_another(
    project: Path, root: int
) -> None:
    (project / "one").mkdir()
    (project / "two").mkdir()
    (project / "led").symlink_to("two")
    nearby = ParentCache(root)
    first = nearby.above(RelativePath.of("one/a"))
    assert nearby.above(RelativePath.of("one/b")) == first
    (project / "one").rename(project / "away")
    assert os.fstat(nearby.above(RelativePath.of("one/c"))).st_ino == _inode(project / "away")
    assert os.fstat(nearby.above(RelativePath.of("two/a"))).st_ino == _inode(project / "two")
    assert nearby.above(RelativePath.of("a")) == root
    for gone in ("led/a", "one/a"):
        with pytest.raises(OSError, match=r"Too many|Not a|No such"):
            nearby.above(RelativePath.of(gone))
    before = len(os.listdir("/proc/self/fd"))
    nearby.above(RelativePath.of("two/a"))
    for _ in range(2):
        nearby.close()
    assert len(os.listdir("/proc/self/fd")) == before


def _inode(path: Path) -> int:
    return path.stat().st_ino
