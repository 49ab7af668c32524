"""What a stream holds is moved into a file as far as it is there, and its end is told apart."""

from __future__ import annotations

import fcntl
import os
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.exec.storage.splice import MOVE_BYTES_MAX, SpliceSource, SpliceTarget, TerminalSource

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    made = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield made
    os.close(made)


def test_a_pipe_is_emptied_to_its_end(file: int) -> None:
    out, into = os.pipe()
    source = SpliceSource(out, stream=1)

    assert (source.held(), source.move(SpliceTarget(file, 0))) == (None, None)
    os.write(into, b"words")
    assert (source.held(), source.move(SpliceTarget(file, 3))) == (1, 5)
    assert (source.held(), source.move(SpliceTarget(file, 8))) == (None, None)
    os.close(into)
    assert (source.held(), source.move(SpliceTarget(file, 8))) == (0, 0)
    assert os.pread(file, 10, 0) == bytes(3) + b"words"

    source.close()
    assert source.is_ended


def test_a_pipe_that_was_found_full_holds_more_from_then_on(file: int) -> None:
    out, into = os.pipe()
    source = SpliceSource(out, stream=0)
    for content in (b"x" * 1000, b"x" * 2**16):
        before = fcntl.fcntl(out, fcntl.F_GETPIPE_SZ)
        os.write(into, content)
        assert source.move(SpliceTarget(file, 0)) == len(content)

    assert (before, fcntl.fcntl(out, fcntl.F_GETPIPE_SZ)) == (2**16, MOVE_BYTES_MAX)
    source.close()
    os.close(into)


def test_what_is_between_a_terminal_and_its_file_comes_first(file: int) -> None:
    (master, slave), (out, into) = os.openpty(), os.pipe()
    tty.setraw(slave)
    source = TerminalSource(master, out, into)

    assert source.move(SpliceTarget(file, 0)) is None
    os.write(into, b"left by a former server, ")
    os.write(slave, b"new")
    assert source.move(SpliceTarget(file, 0)) == 25
    assert source.move(SpliceTarget(file, 25)) == 3
    assert os.pread(file, 50, 0) == b"left by a former server, new"
    os.close(slave)
    assert source.move(SpliceTarget(file, 28)) == 0
    source.close()
