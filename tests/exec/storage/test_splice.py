"""The kernel moves what is there to where it belongs, and says when there is nothing or no more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.exec.storage.splice import SpliceTarget, move

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here")


def test_an_empty_pipe_its_end_and_no_room_are_told_apart(tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    source, end = os.pipe()
    os.set_blocking(source, False)

    assert move(source, SpliceTarget(file, 0)) is None
    os.write(end, b"words")
    assert move(source, SpliceTarget(file, 0, room=0)) is None
    assert move(source, SpliceTarget(file, 0)) == 5
    os.close(end)
    assert move(source, SpliceTarget(file, 0, room=0)) is None  # an end is not to be had by no room
    assert move(source, SpliceTarget(file, 0)) == 0
    os.close(source)
    os.close(file)


def test_output_goes_where_it_is_told_or_where_the_file_stands(tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    source, end = os.pipe()
    os.write(end, b"one two three")

    assert move(source, SpliceTarget(file, 10, room=3)) == 3
    os.lseek(file, 2, os.SEEK_SET)
    assert move(source, SpliceTarget(file, None, room=4)) == 4
    assert os.lseek(file, 0, os.SEEK_CUR) == 6
    assert move(source, SpliceTarget(file, None)) == 6
    assert os.pread(file, 99, 0) == bytes(2) + b" two three" + b"e"
    for each in (source, end, file):
        os.close(each)
