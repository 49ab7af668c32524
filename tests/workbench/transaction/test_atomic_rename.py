"""Names change places in one step, and nothing that has a name loses it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.workbench.transaction.atomic_rename import (
    ExchangeMissing,
    NameAt,
    exchange,
    move,
    move_by_two_names,
    start_writing,
)

Mover = Callable[[NameAt, NameAt], None]
movers = pytest.mark.parametrize("mover", [move, move_by_two_names])


@pytest.fixture
def here(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def state(root: Path) -> dict[str, str]:
    """What every name stands for."""
    return {
        each.name: os.readlink(each) if each.is_symlink() else each.read_text()
        for each in root.iterdir()
        if each.is_symlink() or not each.is_dir()
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
def test_two_things_change_places(tmp_path: Path, here: int) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "other").symlink_to("2")

    exchange(NameAt(here, b"one"), NameAt(here, b"other"))

    assert state(tmp_path) == {"one": "2", "other": "1"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
@pytest.mark.parametrize("there", ["one", "other"])
def test_with_nothing_nothing_changes_places(tmp_path: Path, here: int, there: str) -> None:
    (tmp_path / there).write_text("1")

    with pytest.raises(FileNotFoundError):
        exchange(NameAt(here, b"one"), NameAt(here, b"other"))

    assert state(tmp_path) == {there: "1"}


@movers
def test_a_file_and_a_link_get_a_name_that_is_free(tmp_path: Path, here: int, mover: Mover) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "leaf").touch()

    for old in (b"file", b"link", b"directory"):
        mover(NameAt(here, old), NameAt(here, b"new " + old))

    assert state(tmp_path) == {"new file": "1", "new link": "nowhere"}
    assert os.listdir(tmp_path / "new directory") == ["leaf"]


@movers
@pytest.mark.parametrize("old", ["file", "directory"])
@pytest.mark.parametrize("new", ["file", "link", "directory"])
def test_what_has_the_name_already_keeps_it(
    tmp_path: Path, here: int, mover: Mover, old: str, new: str
) -> None:
    for name, kind in (("old", old), ("new", new)):
        if kind == "file":
            (tmp_path / name).write_text(name)
        elif kind == "link":
            (tmp_path / name).symlink_to("nowhere")
        else:
            (tmp_path / name).mkdir()
    before = {each.name: each.lstat().st_ino for each in tmp_path.iterdir()}

    with pytest.raises(FileExistsError):
        mover(NameAt(here, b"old"), NameAt(here, b"new"))

    assert {each.name: each.lstat().st_ino for each in tmp_path.iterdir()} == before


@movers
def test_what_has_both_names_loses_the_old_one(tmp_path: Path, here: int, mover: Mover) -> None:
    """Somebody was killed between giving the one and taking the other."""
    (tmp_path / "old").write_text("1")
    (tmp_path / "new").hardlink_to(tmp_path / "old")

    mover(NameAt(here, b"old"), NameAt(here, b"new"))

    assert state(tmp_path) == {"new": "1"}


@movers
def test_nothing_gets_no_name(here: int, mover: Mover) -> None:
    with pytest.raises(FileNotFoundError):
        mover(NameAt(here, b"old"), NameAt(here, b"new"))


def test_to_start_writing_is_only_a_hint(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"1")
        file.flush()
        start_writing(file.fileno())

    start_writing(-1)
    assert state(tmp_path) == {"file": "1"}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
def test_a_refused_exchange_is_told_apart_from_other_errors(tmp_path: Path, here: int) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    inside = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        # A directory cannot change places with its parent: EINVAL, as where there is no exchange.
        with pytest.raises(ExchangeMissing):
            exchange(NameAt(here, b"a"), NameAt(inside, b"b"))
    finally:
        os.close(inside)

    assert (tmp_path / "a" / "b").is_dir()
