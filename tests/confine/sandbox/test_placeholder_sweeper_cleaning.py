"""What sandboxes left is removed: through places that are held, and from drafts that are not."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.confine.place.locations import remember_layers
from holdfast.confine.place.place import Place
from holdfast.confine.sandbox.placeholder_sweeper import clean_all
from holdfast.confine.sandbox.placeholders import Placeholders
from tests.confine.workshop import Workshop

NAMES = (".codex", ".git/config", "gone/.envrc")


@contextmanager
def standing_in(workshop: Workshop, place: Place, state: Path) -> Generator[None]:
    """What a sandbox in a place needs, whose end nobody sees."""
    assert place.holder is not None
    remember_layers(state, place.holder)
    root = os.open(f"/proc/{place.holder.pid}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        alive, _ = Placeholders(state).hold({str(workshop.project): NAMES}, root=root)
        yield
        os.close(alive)
    finally:
        os.close(root)


def left(workshop: Workshop) -> set[str]:
    upper = workshop.draft / "upper"
    return {str(path.relative_to(upper)) for path in upper.rglob("*")}


@pytest.fixture
def states(tmp_path: Path) -> Path:
    (tmp_path / "states" / "one").mkdir(parents=True)
    return tmp_path / "states"


def test_what_was_left_goes_and_the_rest_stays(workshop: Workshop, states: Path) -> None:
    with workshop.place() as place:
        workshop.sh(place, "mkdir .git; echo mine >new")
        with standing_in(workshop, place, states / "one"):
            assert left(workshop) == {".codex", ".git", ".git/config", "gone", "new"}
    clean_all(states)

    assert left(workshop) == {".git", "new"}
    clean_all(states)  # again is no harm, nor is what is not there
    clean_all(states / "nowhere")


def test_what_was_removed_in_the_draft_stays_removed(workshop: Workshop, states: Path) -> None:
    (workshop.project / ".codex").mkdir()
    try:
        with workshop.place() as place:
            workshop.sh(place, "rmdir .codex")
            with standing_in(workshop, place, states / "one"):
                assert (workshop.draft / "upper/.codex").is_dir()
        clean_all(states)
        with workshop.place() as place:
            assert ".codex" not in workshop.sh(place, "ls -A")
        assert (workshop.draft / "upper/.codex").is_char_device()
    finally:
        (workshop.project / ".codex").rmdir()


def test_what_somebody_put_there_stays(workshop: Workshop, states: Path) -> None:
    with workshop.place() as place, standing_in(workshop, place, states / "one"):
        workshop.sh(place, "echo mine >.codex/file")
    clean_all(states)

    assert (workshop.draft / "upper/.codex/file").read_text() == "mine\n"


def test_a_place_that_is_held_is_entered(workshop: Workshop, states: Path) -> None:
    with workshop.place() as place:
        with standing_in(workshop, place, states / "one"):
            clean_all(states)
            assert ".codex" in left(workshop)  # somebody lives who needs it
        assert ".codex" in workshop.sh(place, "ls -A")
        clean_all(states)
        assert ".codex" not in workshop.sh(place, "ls -A")
        assert left(workshop) == set()


def test_on_the_machine_itself_and_where_nothing_is_known(tmp_path: Path, states: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    remember_layers(states / "one", None)
    (states / "two").mkdir()
    (states / "two/place.json").write_text("{")
    alive, _ = Placeholders(states / "one").hold({str(workspace): (".codex",)}, root=None)
    clean_all(states)
    assert (workspace / ".codex").exists()  # somebody lives who needs it
    os.close(alive)
    clean_all(states)
    assert list(workspace.iterdir()) == []
