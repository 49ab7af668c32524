"""The plain place: every path means what it means to everyone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from errno import ELOOP
from pathlib import Path

import pytest

from holdfast.exec.place import Place


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.close()


def raw(path: Path) -> bytes:
    return os.fsencode(path)


def test_paths_are_resolved_from_its_root(tmp_path: Path, place: Place) -> None:
    place.make_directory(raw(tmp_path / "a"))
    place.make_link(raw(tmp_path / "way"), target=raw(tmp_path / "a"))  # absolute, and inside
    file = place.open(raw(tmp_path / "way" / "f"), os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x")
    os.close(file)

    assert (tmp_path / "a" / "f").read_bytes() == b"x"
    assert place.names(raw(tmp_path)) == [b"a", b"way"]
    assert place.resolve(raw(tmp_path / "way" / "f")) == raw(tmp_path / "a" / "f")
    assert place.read_link(raw(tmp_path / "way")) == raw(tmp_path / "a")
    assert place.look(raw(tmp_path / "way")).st_ino == (tmp_path / "a").stat().st_ino
    assert place.look(raw(tmp_path / "way"), follow=False).st_ino != (tmp_path / "a").stat().st_ino
    place.remove(raw(tmp_path / "way"), is_directory=False)
    place.remove(raw(tmp_path / "a" / "f"), is_directory=False)
    place.remove(raw(tmp_path / "a"), is_directory=True)
    assert place.names(raw(tmp_path)) == []
    assert place.names(b"/") == sorted(map(os.fsencode, os.listdir("/")))


@pytest.mark.parametrize("path", ["way/f", "a/link"])
def test_links_are_refused_where_none_may_be(tmp_path: Path, place: Place, path: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"x")
    (tmp_path / "way").symlink_to("a")
    (tmp_path / "a" / "link").symlink_to("f")

    os.close(place.open_without_links(raw(tmp_path / "a" / "f"), os.O_RDONLY))
    with pytest.raises(OSError) as refused:
        place.open_without_links(raw(tmp_path / path), os.O_RDONLY)
    assert refused.value.errno == ELOOP


def test_no_descriptor_is_left(tmp_path: Path, place: Place) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    before = os.listdir("/proc/self/fd")
    for path in ("link", "none", "none/deeper", "link/deeper"):
        with pytest.raises(OSError):
            place.open_without_links(raw(tmp_path / path), os.O_RDONLY)
        with pytest.raises(OSError):
            place.resolve(raw(tmp_path / path))

    assert len(os.listdir("/proc/self/fd")) == len(before)
