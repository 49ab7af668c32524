"""A gate decides by where a path really leads, at the moment in which it is used."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.confine.place.files import MergedRootFiles, NamespaceFiles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here")

MAKES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[NamespaceFiles]:
    """What is in `open` may be written and read, what is in `shown` read, all else nothing."""
    base = os.fsencode(tmp_path.resolve())

    def gate(path: bytes, writes: bool) -> None:
        allowed = [b"/open"] if writes else [b"/open", b"/shown", b""]
        if not any(path == base + each or path.startswith(base + each + b"/") for each in allowed):
            raise PermissionError(13, "the gate is closed")
        if b"/closed" in path:
            raise PermissionError(13, "the gate is closed")

    for name in ("open", "shown", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "open" / "out").symlink_to("../closed")
    (tmp_path / "open" / "shown").symlink_to("../shown/file")
    (tmp_path / "open" / "nowhere").symlink_to("../closed/new")
    files = MergedRootFiles.on_machine()
    yield NamespaceFiles(files, gate)
    files.close()


def test_what_is_allowed_works(gated: NamespaceFiles, tmp_path: Path) -> None:
    at = os.fsencode(tmp_path) + b"/open/"
    gated.make_directory(at + b"made")
    os.close(gated.open(at + b"made/file", MAKES, mode=0o600))
    gated.make_link(at + b"link", target=b"made/file")
    assert gated.names(at) == [b"file", b"link", b"made", b"nowhere", b"out", b"shown"]
    assert gated.read_link(at + b"link") == b"made/file"
    assert gated.look(at + b"link").st_mode & 0o777 == 0o600
    assert os.path.samestat(gated.look(at + b"link", follow=False), os.lstat(at + b"link"))
    assert gated.resolve(at + b"shown") == os.fsencode(tmp_path.resolve()) + b"/shown/file"
    os.close(gated.open_without_links(at + b"made/file", os.O_RDONLY))
    gated.remove(at + b"link", is_directory=False)
    gated.remove(at + b"made/file", is_directory=False)
    gated.remove(at + b"made", is_directory=True)


@pytest.mark.promise("C8")
def test_of_a_tree_nothing_is_removed_that_the_gate_keeps(
    gated: NamespaceFiles, tmp_path: Path
) -> None:
    at = os.fsencode(tmp_path) + b"/open/"
    for name in ("free", "tree/closed"):
        (tmp_path / "open" / name).mkdir(parents=True)
        (tmp_path / "open" / name / "file").touch()
    gated.remove_tree(at + b"free")
    for kept in (b"tree", b"../shown"):
        with pytest.raises(PermissionError):
            gated.remove_tree(at + kept)

    assert sorted(os.listdir(tmp_path / "open" / "tree" / "closed")) == ["file"]
    assert os.listdir(tmp_path / "shown") == ["file"]
    assert not (tmp_path / "open" / "free").exists()


@pytest.mark.parametrize(
    "act",
    [
        lambda files, at: files.open(at + b"/closed/file", os.O_RDONLY),
        lambda files, at: files.open(at + b"/open/../closed/file", os.O_RDONLY),
        lambda files, at: files.open(at + b"/open/out/file", os.O_RDONLY),
        lambda files, at: files.open(at + b"/open/out/new", MAKES),
        lambda files, at: files.open(at + b"/open/shown", MAKES),
        lambda files, at: files.open(at + b"/open/nowhere", MAKES),
        lambda files, at: files.open(at + b"/shown/new", MAKES),
        lambda files, at: files.open(at + b"/shown/file", os.O_RDWR),
        lambda files, at: files.look(at + b"/open/out/file"),
        lambda files, at: files.look(at + b"/open/out/file", follow=False),
        lambda files, at: files.names(at + b"/open/out"),
        lambda files, at: files.resolve(at + b"/open/out"),
        lambda files, at: files.make_directory(at + b"/open/out/new"),
        lambda files, at: files.make_directory(at + b"/shown/new"),
        lambda files, at: files.remove(at + b"/open/out/file", is_directory=False),
        lambda files, at: files.remove(at + b"/shown/file", is_directory=False),
        lambda files, at: files.make_link(at + b"/shown/link", target=b"x"),
        lambda files, at: files.make_directory(b"/open/.."),
    ],
)
def test_what_leads_elsewhere_is_refused(
    gated: NamespaceFiles, tmp_path: Path, act: Callable[[NamespaceFiles, bytes], object]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError):
        act(gated, os.fsencode(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "closed" / "file").read_text() == "closed"
    assert (tmp_path / "shown" / "file").read_text() == "shown"


@pytest.mark.promise("C8")
def test_nobody_slips_through_while_a_name_changes_its_meaning(
    gated: NamespaceFiles, tmp_path: Path
) -> None:
    """A directory becomes a link to what is closed and back, all the time."""
    door, is_over = tmp_path / "open" / "door", threading.Event()
    (tmp_path / "open" / "real").mkdir()
    (tmp_path / "open" / "real" / "file").touch()
    (tmp_path / "open" / "link").symlink_to("../closed")

    def swap() -> None:
        while not is_over.is_set():
            for name in ("real", "link"):
                with suppress(OSError):
                    os.rename(tmp_path / "open" / name, door)
                    os.rename(door, tmp_path / "open" / name)

    thread = threading.Thread(target=swap)
    thread.start()
    written = 0
    try:
        for _ in range(3000):
            for name in (b"/new", b"/file"):
                with suppress(OSError):
                    os.close(gated.open(os.fsencode(door) + name, MAKES))
                    written += 1
    finally:
        is_over.set()
        thread.join()
    assert written
    assert not (tmp_path / "closed" / "new").exists()
    assert (tmp_path / "closed" / "file").read_text() == "closed"
