"""A glance tells where something differs, and is silent where nothing does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.workbench.scan import scanner as glancing
from holdfast.workbench.scan.scanner import changed_directories
from holdfast.workbench.scan.stat_cache import encode_stats, stat_line


@pytest.fixture
def root(project: Path) -> Iterator[int]:
    (project / "d" / "e").mkdir(parents=True)
    (project / "empty").mkdir()
    for name in ("a", "d/b", "d/e/c", "d/e/\udcff"):
        (project / name).write_bytes(name.encode("utf-8", "surrogateescape"))
    (project / "link").symlink_to("nowhere")
    os.utime(project / "a", ns=(-1_500_000_000, -1_500_000_000))
    descriptor = os.open(project, os.O_RDONLY)
    if changed_directories(descriptor, []) is None:
        pytest.skip("the file system of the temporary directory is not known to keep times")
    yield descriptor
    os.close(descriptor)


def sights(project: Path) -> list[tuple[bytes, bytes]]:
    """What a look sees, directory by directory."""
    found: list[tuple[bytes, bytes]] = []
    for here, directories, files in os.walk(project):
        names = sorted(os.fsencode(name) for name in directories + files)
        lines = [stat_line(os.lstat(os.path.join(os.fsencode(here), name))) for name in names]
        way = os.path.relpath(here, project)
        found.append((b"" if way == "." else os.fsencode(way), encode_stats(names, lines)))
    return found


def test_where_nothing_changed_nothing_differs(root: int, project: Path) -> None:
    assert changed_directories(root, sights(project)) == []


ACTS: dict[str, tuple[Callable[[Path], object], set[bytes]]] = {
    "an edit": (lambda project: (project / "d/b").write_bytes(b"x"), {b"d"}),
    "a mode": (lambda project: (project / "d/e/c").chmod(0o600), {b"d/e"}),
    "a time": (lambda project: os.utime(project / "a", (5, 5)), {b""}),
    "a new name": (lambda project: (project / "d/e/new").touch(), {b"d"}),
    "a name in what was empty": (lambda project: (project / "empty/new").touch(), {b""}),
    "a deletion": (lambda project: (project / "d/e/c").unlink(), {b"d", b"d/e"}),
    "a rename over": (lambda project: (project / "d/b").rename(project / "a"), {b"", b"d"}),
    "a link elsewhere": (
        lambda project: ((project / "link").unlink(), (project / "link").symlink_to("a")),
        {b""},
    ),
    "a directory that is a link now": (
        lambda project: (
            (project / "d/e").rename(project / "f"),
            (project / "d/e").symlink_to("../f"),
        ),
        {b"", b"d", b"d/e"},
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_changed_differs(root: int, project: Path, act: str) -> None:
    do, expected = ACTS[act]
    before = sights(project)
    do(project)
    found = changed_directories(root, before)

    assert found is not None
    assert set(found) == expected


def test_a_large_directory_needs_more_room(root: int, project: Path) -> None:
    for number in range(1500):
        (project / "empty" / f"f{number}").touch()
    before = sights(project)
    assert changed_directories(root, before) == []
    (project / "empty" / "f1499").write_bytes(b"x")
    assert changed_directories(root, before) == [b"empty"]


def test_what_is_too_large_is_always_listed(
    root: int, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glancing, "NAMES_MAX", 1024)
    for number in range(1025):
        (project / "empty" / f"f{number}").touch()

    assert changed_directories(root, sights(project)) == [b"empty"]


def test_where_times_mean_nothing_there_is_no_glance() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("there is no /proc here")
    descriptor = os.open("/proc", os.O_RDONLY)

    assert changed_directories(descriptor, []) is None
    os.close(descriptor)
