"""Files are reached as those inside see them, however a link is written."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.confine.place.files import MergedRootFiles
from holdfast.world.openat2 import has_openat2

needs_it = pytest.mark.skipif(not has_openat2(), reason="this system has no openat2")


@pytest.fixture(params=["root", "machine"])
def rooted(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[MergedRootFiles, bytes]]:
    """Files below a root of their own or of the machine, and where the test's are there."""
    if request.param == "root":
        if not has_openat2():
            pytest.skip("this system has no openat2")
        files, where = MergedRootFiles(os.open(tmp_path, os.O_RDONLY)), b"/"
    else:
        files, where = MergedRootFiles.on_machine(), os.fsencode(tmp_path.resolve()) + b"/"
    try:
        yield files, where
    finally:
        files.close()


def test_every_operation(rooted: tuple[MergedRootFiles, bytes], tmp_path: Path) -> None:
    files, at = rooted
    files.make_directory(at + b"made")
    files.make_directory(at + b"made/below/")
    os.close(files.open(at + b"made/file", os.O_CREAT | os.O_WRONLY, mode=0o600))
    files.make_link(at + b"link", target=b"made/file")

    assert files.names(at) == [b"link", b"made"]
    assert files.names(at + b"made") == [b"below", b"file"]
    assert files.directories(at) == [b"made"]
    assert files.directories(at, but=(b"made",)) == []
    assert files.directories(at + b"made") == []  # what is below is empty
    assert files.read_link(at + b"link") == b"made/file"
    assert files.look(at + b"link").st_mode & 0o777 == 0o600
    assert os.path.samestat(files.look(at + b"made"), (tmp_path / "made").stat())
    assert os.path.samestat(files.look(at + b"link", follow=False), (tmp_path / "link").lstat())
    assert files.resolve(at + b"link") == os.fsencode(tmp_path.resolve() / "made" / "file")
    os.close(files.open_without_links(at + b"made/file", os.O_RDONLY))
    files.remove(at + b"link", is_directory=False)
    files.remove(at + b"made/below", is_directory=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["made", "file"]


@pytest.mark.parametrize(
    ("act", "number"),
    [
        (lambda files, at: files.open(at + b"none", os.O_RDONLY), errno.ENOENT),
        (lambda files, at: files.make_directory(at + b"there"), errno.EEXIST),
        (lambda files, at: files.remove(at + b"there", is_directory=False), errno.EISDIR),
        (lambda files, at: files.remove(at + b"none", is_directory=True), errno.ENOENT),
        (lambda files, at: files.read_link(at + b"there"), errno.EINVAL),
        (lambda files, at: files.names(at + b"none"), errno.ENOENT),
        (lambda files, at: files.open_without_links(at + b"link/x", os.O_RDONLY), errno.ELOOP),
        (lambda files, at: files.open_without_links(at + b"link", os.O_RDONLY), errno.ELOOP),
        (lambda files, at: files.look(at + b"loop"), errno.ELOOP),
        (lambda files, at: files.make_link(at + b"there", target=b"x"), errno.EEXIST),
    ],
)
def test_what_cannot_be_done_is_refused_as_the_system_does(
    rooted: tuple[MergedRootFiles, bytes], tmp_path: Path, act: object, number: int
) -> None:
    files, at = rooted
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "loop").symlink_to("loop")
    assert callable(act)
    with pytest.raises(OSError) as raised:
        act(files, at)

    expected = {number, errno.EPERM} if sys.platform == "darwin" else {number}
    assert raised.value.errno in expected


@needs_it
@pytest.mark.parametrize("way", [b"/absolute", b"/up", b"/absolute/../secret", b"/../secret"])
def test_no_way_leads_out_of_a_root(tmp_path: Path, way: bytes) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("outside")
    (inside / "secret").write_text("inside")
    (inside / "absolute").symlink_to("/secret")
    (inside / "up").symlink_to("../secret")
    files = MergedRootFiles(os.open(inside, os.O_RDONLY))
    try:
        with open(files.open(way.replace(b"absolute/..", b"."), os.O_RDONLY)) as found:
            assert found.read() == "inside"
    finally:
        files.close()


def test_a_tree_is_removed_and_no_link_in_it_is_followed(
    rooted: tuple[MergedRootFiles, bytes], tmp_path: Path
) -> None:
    files, at = rooted
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "b" / os.fsdecode(b"\xff")).touch()
    (tmp_path / "tree" / "a" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "way").symlink_to("kept")
    before = os.listdir("/dev/fd")
    files.remove_tree(at + b"tree/")
    with pytest.raises(NotADirectoryError):
        files.remove_tree(at + b"way")
    with pytest.raises(NotADirectoryError):
        files.remove_tree(at + b"kept/file")

    assert sorted(os.listdir(tmp_path)) == ["kept", "way"]
    assert os.listdir(tmp_path / "kept") == ["file"]
    assert len(os.listdir("/dev/fd")) == len(before)
