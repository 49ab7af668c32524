"""What stands in is seen where it is kept, whatever mounts of the same draft there are."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.confine.place.creation import create
from holdfast.confine.place.locations import LayerLocations, remember_layers, remembered
from holdfast.confine.place.place import Place, end, locked
from holdfast.confine.sandbox.placeholders import UNKNOWN, PlaceholderRoot, Placeholders, reached
from tests.confine.workshop import Workshop
from tests.journeys.stage import linux_only

pytestmark = linux_only

NAMES = (".codex", ".git", ".idea")


@dataclass(frozen=True)
class Draft:
    """A workshop's draft, and the state directory of the sandboxes in it."""

    workshop: Workshop
    state: Path

    @property
    def placeholders(self) -> Placeholders:
        return Placeholders(self.state)

    @property
    def where(self) -> LayerLocations:
        found = remembered(self.state)
        assert found is not None
        return found

    def path(self, name: str) -> str:
        return str(self.workshop.project / name)

    def create(self) -> Place:
        place = create(self.workshop.spec)
        remember_layers(self.state, place.holder)
        return place

    def hold(self, root: int | None, *names: str) -> int:
        return self.placeholders.hold({str(self.workshop.project): names}, root=root)[0]

    def left(self) -> set[str]:
        return set(os.listdir(self.workshop.draft / "upper"))


@pytest.fixture
def draft(workshop: Workshop, tmp_path: Path) -> Iterator[Draft]:
    try:
        yield Draft(workshop, tmp_path / "state")
    finally:
        end(workshop.draft)


@contextmanager
def rooted(place: Place) -> Generator[int]:
    """A root of a place, which outlives it for as long as the block lasts."""
    root = place.files.open(b"/", os.O_PATH | os.O_DIRECTORY)
    try:
        yield root
    finally:
        os.close(root)


def kill(place: Place) -> None:
    """Let the holder die, and see it gone; what is open of the place stays open."""
    assert place.holder is not None
    life = os.pidfd_open(place.holder.pid)
    try:
        signal.pidfd_send_signal(life, signal.SIGKILL)
        while not place.is_lost:
            os.sched_yield()
    finally:
        os.close(life)


def sees(root: int, path: str) -> bool:
    try:
        os.stat(path.lstrip("/"), dir_fd=root)
    except FileNotFoundError:
        return False
    return True


def test_a_root_that_outlives_its_place_is_not_asked(draft: Draft) -> None:
    """When all else of a place is closed, its root leads to the project, where nothing stands."""
    place = draft.create()
    with rooted(place) as root:
        alive = draft.hold(root, *NAMES)
        kill(place)
        place.close()
        assert draft.left() == set(NAMES)
        assert not any(sees(root, draft.path(name)) for name in NAMES)
        draft.placeholders.release(alive)
    assert draft.left() == set()


def test_what_a_former_mount_did_not_see_is_not_forgotten(draft: Draft) -> None:
    with draft.create() as old, rooted(old) as former:
        alive = draft.hold(former, ".codex")
        assert not sees(former, draft.path(".git"))  # it remembers that
        kill(old)
        with draft.create() as new, rooted(new) as root:
            os.close(draft.hold(root, ".git", ".idea"))  # and whoever needed it is dead
            assert not sees(former, draft.path(".git"))
            draft.placeholders.release(alive)
            assert draft.left() == set()


def test_what_the_mount_does_not_see_goes_from_the_layer(draft: Draft) -> None:
    """Somebody who was slow still makes something through the mount of a place that is lost."""
    with draft.create() as old, rooted(old) as former:
        kill(old)
        with draft.create() as new, rooted(new) as root:
            assert not sees(root, draft.path(".codex"))
            alive = draft.hold(former, ".codex")
            assert not sees(root, draft.path(".codex"))
            draft.placeholders.release(alive)
            assert draft.left() == set()


def test_a_draft_that_somebody_is_about_to_hold_is_cleaned_later(draft: Draft) -> None:
    with draft.create() as place, rooted(place) as root:
        alive = draft.hold(root, *NAMES)
        kill(place)
    with locked(str(draft.workshop.draft)):
        draft.placeholders.release(alive)
        assert draft.left() == set(NAMES)
    with draft.create():
        draft.placeholders.clean()
        assert draft.left() == set()


def test_of_a_draft_that_is_gone_nothing_is_kept(draft: Draft, tmp_path: Path) -> None:
    with draft.create() as place, rooted(place) as root:
        alive = draft.hold(root, *NAMES)
    end(draft.workshop.draft)
    os.rename(draft.workshop.draft, tmp_path / "elsewhere")
    draft.placeholders.release(alive)
    assert (draft.state / "placeholders/made.json").read_bytes() == b"{}"


def test_a_place_that_covers_no_more_is_not_asked(workshop: Workshop, tmp_path: Path) -> None:
    """It leads to the project itself, where someone else's sandbox may need the very same."""
    also = tmp_path / "also"
    also.mkdir()
    with create(replace(workshop.spec, also=(str(also),))) as place, rooted(place) as root:
        remember_layers(tmp_path / "state", place.holder)
        where = remembered(tmp_path / "state")
        assert where is not None
        assert PlaceholderRoot(where, root).make(f"{also}/.codex") is not None
        also.rmdir()
        also.mkdir()
        assert PlaceholderRoot(LayerLocations(), None).make(f"{also}/.codex") is not None
        with reached(where) as standing:
            assert standing is not None
            assert standing.remove(f"{also}/.codex", UNKNOWN)
        assert [path.name for path in also.iterdir()] == [".codex"]
        assert not (workshop.draft / "upper-1/.codex").is_dir()
        end(workshop.draft)


def test_the_number_is_that_of_the_layer(draft: Draft) -> None:
    with draft.create() as place, rooted(place) as root:
        standing = PlaceholderRoot(draft.where, root)
        layer = draft.workshop.draft / "upper/.codex"
        number = standing.make(draft.path(".codex"))
        assert number == layer.lstat().st_ino
        assert standing.remove(draft.path(".codex"), number + 1)  # it is another's
        assert draft.left() == {".codex"}
        assert standing.remove(draft.path(".codex"), number)
        assert draft.left() == set()


def test_a_draft_on_another_file_system_is_cleaned_through_its_next_place(
    workshop: Workshop, tmp_path: Path
) -> None:
    """There each mount gives its own numbers to the same directories."""
    with elsewhere(tmp_path) as directory:
        draft = Draft(replace(workshop, draft=directory / "draft"), tmp_path / "state")
        with draft.create() as place, rooted(place) as root:
            os.close(draft.hold(root, *NAMES))
            kill(place)
        with draft.create():
            draft.placeholders.clean()
            assert draft.left() == set()
            end(draft.workshop.draft)


@contextmanager
def elsewhere(here: Path) -> Generator[Path]:
    """A directory on another file system."""
    memory = "/dev/shm"
    if not os.path.isdir(memory) or os.stat(memory).st_dev == here.stat().st_dev:
        pytest.skip(f"{memory} is no file system of its own")
    with tempfile.TemporaryDirectory(dir=memory, prefix="holdfast-test-") as made:
        yield Path(made)
