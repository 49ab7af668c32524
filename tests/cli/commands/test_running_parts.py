"""What runs for one state directory is found, and what runs for another is not."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.render.stop import Sort
from holdfast.confine.failures import PlaceUnavailable
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import end
from tests.cli.planes import eventually, plane_home, running
from tests.cli.sandboxes import needs_sandbox, starting


def sorts(home: Path) -> list[Sort]:
    return [each.sort for each in belongings(home / "state")]


def test_a_server_and_its_keeper_with_their_processes() -> None:
    with plane_home() as home, plane_home() as other:
        with running("exec", "--", "sleep", "100", home=home) as process:
            eventually(lambda: any(each.processes for each in belongings(home / "state")))
            found = belongings(home / "state")
            process.kill()

        assert [(each.sort, each.where, each.processes) for each in found] == [
            (Sort.SERVER, str(home / "state/exec"), 0),
            (Sort.KEEPER, str(home / "state/exec"), 1),
        ]
        assert belongings(other / "state") == []


def test_a_sandbox_is_one_thing(tmp_path: Path) -> None:
    needs_sandbox()
    words = ("--write", ".", "--", "sh", "-c", "echo ready; read line")
    with starting(*words, home=tmp_path, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (found,) = belongings(tmp_path / "state")
        process.communicate(b"\n", timeout=60)

    assert (found.sort, found.pid, found.where) == (Sort.SANDBOX, process.pid, str(tmp_path))
    assert belongings(tmp_path / "state") == []


@contextmanager
def place_of(home: Path, project: Path) -> Generator[int]:
    """A place whose draft lies in a home; the number of its holder."""
    draft = home / "state" / "draft"
    draft.parent.mkdir(parents=True)
    project.mkdir()
    try:
        with create(PlaceSpec(directory=str(draft), project=str(project))) as place:
            assert place.holder is not None
            yield place.holder.pid
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable.reason}")
    finally:
        end(draft)


def test_a_place_whose_draft_lies_there(tmp_path: Path) -> None:
    with place_of(tmp_path / "home", tmp_path / "project") as holder:
        (found,) = belongings(tmp_path / "home" / "state")

        assert (found.sort, found.pid, found.where) == (
            Sort.PLACE,
            holder,
            str(tmp_path / "project"),
        )
        assert belongings(tmp_path / "other" / "state") == []


def test_we_ourselves_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "keeper.lock").touch()
    lock = os.open(tmp_path / "keeper.lock", os.O_RDONLY)
    try:
        assert belongings(tmp_path) == []
    finally:
        os.close(lock)
