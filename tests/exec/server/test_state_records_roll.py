"""A roll gives back what was added, whatever broke off, and does not grow for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.exec.server.state_records import AppendOnlyRecords


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "roll.jsonl"


def test_what_was_added_is_read_by_the_next(path: Path) -> None:
    assert AppendOnlyRecords(path).read() == []
    roll = AppendOnlyRecords(path)
    for key in "abc":
        roll.add(key, key.encode() * 3)
    roll.add("a", b"more")
    roll.drop("b", b"gone")
    roll.drop("b", b"twice")

    lines = [b"aaa", b"bbb", b"ccc", b"more", b"gone"]
    assert AppendOnlyRecords(path).read() == lines  # until it is swept
    roll.sweep({"c": b"ccc"})
    roll.add("d", b"ddd")
    assert AppendOnlyRecords(path).read() == [b"ccc", b"ddd"]


def test_a_disk_that_refuses_the_last_line_is_not_asked_again(path: Path) -> None:
    roll = AppendOnlyRecords(path)
    roll.add("a", b"first")
    path.unlink()
    path.mkdir()
    roll.drop("a", b"gone")
    with pytest.raises(IsADirectoryError):
        roll.add("b", b"second")


@pytest.mark.parametrize("cut", range(8))
def test_a_line_that_broke_off_spoils_no_other(path: Path, cut: int) -> None:
    AppendOnlyRecords(path).add("a", b"first")
    AppendOnlyRecords(path).add("b", b"second")
    os.truncate(path, path.stat().st_size - cut)
    AppendOnlyRecords(path).add("c", b"third")

    rest = b"second"[: max(0, 6 - cut)]
    assert AppendOnlyRecords(path).read() == [line for line in (b"first", rest, b"third") if line]


def test_a_disk_that_refuses_loses_nothing(path: Path) -> None:
    AppendOnlyRecords(path).add("a", b"first")
    path.with_suffix(".new").mkdir()
    AppendOnlyRecords(path).sweep({"b": b"second"})

    assert AppendOnlyRecords(path).read() == [b"first"]


def test_it_is_rewritten_when_most_of_it_is_dropped(path: Path) -> None:
    roll, line = AppendOnlyRecords(path), b"x" * 1000
    roll.add("kept", b"kept")
    roll.add("kept", b"too")
    for number in range(3000):
        roll.add(str(number), line)
        roll.drop(str(number), b"gone")

    assert path.stat().st_size <= 2**20 + 2 * len(line)
    assert AppendOnlyRecords(path).read()[:2] == [b"kept", b"too"]
