"""Names that were looked up in a place are looked up again once it is mounted anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import Place, end
from holdfast.confine.place.remount import remount

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]

_OPEN = os.O_RDONLY | os.O_DIRECTORY


def edit_in_place(project: Path) -> None:
    (project / "f").write_text("edited")


def save_by_renaming(project: Path) -> None:
    (project / ".f.swp").write_text("saved")
    (project / ".f.swp").rename(project / "f")


def make(project: Path) -> None:
    (project / "new").write_text("made")


def remove(project: Path) -> None:
    (project / "f").unlink()


def rename_directory(project: Path) -> None:
    (project / "d").rename(project / "moved")


def replace_directory(project: Path) -> None:
    shutil.rmtree(project / "d")
    (project / "d").write_text("a file now")


def make_where_somebody_looked(project: Path) -> None:
    (project / "d" / "new").write_text("made")


EDITS = [
    edit_in_place,
    save_by_renaming,
    make,
    remove,
    rename_directory,
    replace_directory,
    make_where_somebody_looked,
]


def seen(root: int) -> dict[str, str]:
    """All that is seen below a directory, and what asking for names that are not there says."""
    found: dict[str, str] = {}
    directory = os.open(".", _OPEN, dir_fd=root)
    try:
        for top, _, names in os.walk(f"/proc/self/fd/{directory}"):
            for name in names:
                path = Path(top, name)
                found[str(path).split("/", 5)[-1]] = path.read_text()
    finally:
        os.close(directory)
    for name in ("f", "new", "d/g", "d/new", "moved", "moved/g"):
        try:
            os.stat(name, dir_fd=root)
        except OSError as error:
            found[name] = f"errno {error.errno}"
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "d").mkdir(parents=True)
    (made / "f").write_text("old")
    (made / "d" / "g").write_text("old")
    return made


@pytest.fixture
def place(project: Path, tmp_path: Path) -> Place:
    return create(PlaceSpec(directory=str(tmp_path / "draft"), project=str(project)))


@pytest.fixture(autouse=True)
def over(tmp_path: Path) -> object:
    yield
    end(tmp_path / "draft")


@pytest.mark.parametrize("is_peopled", [False, True])
@pytest.mark.parametrize("edit", EDITS)
def test_everything_that_a_person_does_is_seen(
    project: Path, place: Place, edit: Callable[[Path], None], is_peopled: bool
) -> None:
    with place:
        root = place.files.open(os.fsencode(project), _OPEN)
        inside = _somebody(place, project) if is_peopled else None
        seen(root)

        edit(project)
        remount(place.namespaces[:2], [root])

        below = os.open(project, _OPEN)
        assert seen(root) == seen(below)
        os.close(below)
        os.close(root)
        if inside is not None:
            inside.kill()
            inside.wait()


_JOIN = """
import os, sys
from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.place.place import find
with find(sys.argv[1]) as place:
    entry = ProcessEntry(("/bin/sh", "-c", "cat f d/g new 2>&1; ls -R; echo here; exec sleep 100"),
                  {"PATH": "/usr/bin:/bin"}, sys.argv[2], "/bin/sh", {0: 0, 1: 1, 2: 2},
                  place.namespaces)
    os.waitpid(enter(entry), 0)
"""


def _somebody(place: Place, project: Path) -> subprocess.Popen[str]:
    """A process inside, which works in the project and has looked at everything."""
    assert place.holder is not None
    command = [sys.executable, "-c", _JOIN, place.holder.directory, str(project)]
    inside = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert inside.stdout is not None
    assert "here\n" in iter(inside.stdout.readline, "")
    inside.stdout.close()
    return inside


def test_what_somebody_has_open_keeps_its_name_until_it_is_closed(
    project: Path, place: Place
) -> None:
    with place:
        root = place.files.open(os.fsencode(project), _OPEN)
        held = os.open("f", os.O_RDONLY, dir_fd=root)
        save_by_renaming(project)

        remount(place.namespaces[:2], [root])
        assert seen(root)["f"] == "old"

        os.close(held)
        remount(place.namespaces[:2], [root])
        assert seen(root)["f"] == "saved"
        os.close(root)


def test_what_was_written_inside_stays(project: Path, place: Place) -> None:
    with place:
        root = place.files.open(os.fsencode(project), _OPEN)
        os.close(os.open("written", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=root))
        make(project)

        remount(place.namespaces[:2], [root])

        assert sorted(os.listdir(place.files.open(os.fsencode(project), _OPEN))) == [
            "d",
            "f",
            "new",
            "written",
        ]
        assert not (project / "written").exists()
        os.close(root)


def test_it_is_done_where_there_are_threads_too(project: Path, place: Place) -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    with place:
        root = place.files.open(os.fsencode(project), _OPEN)
        seen(root)
        save_by_renaming(project)
        other.start()
        try:
            remount(place.namespaces[:2], [root])
        finally:
            over.set()
            other.join()
        assert seen(root)["f"] == "saved"
        os.close(root)


def test_what_is_no_place_is_refused(project: Path, place: Place) -> None:
    with place:
        outside = os.open(project, _OPEN)
        with pytest.raises(OSError):
            remount(place.namespaces[:2], [outside])
        os.close(outside)
