"""The files of one process hold what was put into them, through limits, tears and restarts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.exec.model import Closed, Event, Exited, Output
from holdfast.exec.output_index import CHUNK_BYTES_MAX
from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage.retention import OutputFiles
from holdfast.exec.storage.splice import enlarge_pipe, move

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here")

PIPES = (OutputStream.STDOUT, OutputStream.STDERR)
FULL = CHUNK_BYTES_MAX


def put(retained: OutputFiles, stream: int, data: bytes) -> None:
    """Move this into the file of a stream, the way output comes."""
    source, end = os.pipe()
    enlarge_pipe(end)
    os.write(end, data)
    os.close(end)
    while moved := move(source, retained.place(stream)):
        retained.files[stream].grew(moved)
    os.close(source)


def events(retained: OutputFiles, after_seq: int = 0, bytes_max: int | None = None) -> list[Event]:
    return list(retained.events(after_seq, bytes_max, 10_000))


def reopened(retained: OutputFiles) -> OutputFiles:
    retained.close()
    return OutputFiles.found(retained.directory)


def test_an_empty_pipe_and_its_end_are_told_apart(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    source, end = os.pipe()
    os.set_blocking(source, False)

    assert move(source, retained.place(0)) is None
    os.close(end)
    assert move(source, retained.place(0)) == 0
    os.close(source)
    retained.close()


def test_what_is_not_in_the_index_is_not_told_and_not_lost(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    put(retained, 1, b"moved")
    assert events(retained) == []

    retained = reopened(retained)
    assert retained.cover()
    assert not retained.cover()
    assert events(retained) == [Output(1, OutputStream.STDERR, b"moved")]
    retained.close()


def test_nothing_is_told_twice_after_it_was_told(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    put(retained, 0, b"one")
    retained.cover()
    retained.note_exit(9)
    retained.note_exit(8)
    put(retained, 0, b"two")
    retained.cover()
    retained.note_closed()
    retained.note_closed()

    for _ in range(2):
        assert events(retained) == [
            Output(1, OutputStream.STDOUT, b"one"),
            Exited(2, 9),
            Output(3, OutputStream.STDOUT, b"two"),
            Closed(4),
        ]
        retained = reopened(retained)
    retained.close()


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 3),
        (FULL, 1, FULL),
        (40_000, 40_000, 10, 30_000, 5),
        (FULL - 1, FULL - 1, 2, 1, FULL),
    ],
)
def test_pieces_of_any_size_are_read_as_they_were_put(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    written = [bytes([number]) * size for number, size in enumerate(sizes)]
    retained = OutputFiles(tmp_path, PIPES)
    for data in written:
        put(retained, 0, data)
        retained.cover()

    for _ in range(2):
        assert [event.data for event in events(retained) if isinstance(event, Output)] == written
        retained = reopened(retained)
    retained.close()


def test_what_the_file_has_lost_is_not_made_of_what_was_read_before(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    for data in (b"a" * FULL, b"b" * 10):
        put(retained, 0, data)
        retained.cover()
    os.truncate(tmp_path / "stdout", FULL + 4)

    assert events(retained) == [
        Output(1, OutputStream.STDOUT, b"a" * FULL),
        Output(2, OutputStream.STDOUT, b"bbbb"),
    ]
    retained.close()


def test_an_exit_is_known_after_its_record_was_dropped(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    retained.note_exit(9)
    for _ in range(5):
        put(retained, 0, b"x" * 1000)
        retained.cover()
    retained.drop(2100, before=None)

    for _ in range(2):
        assert [event.seq for event in events(retained)] == [5, 6]
        assert (retained.position.exit_seq, retained.position.exit_status) == (1, 9)
        retained = reopened(retained)
    retained.close()


@pytest.mark.parametrize(("before", "first"), [(None, 5), (3, 3), (1, 1), (99, 5)])
def test_nothing_is_dropped_that_somebody_needs(
    tmp_path: Path, before: int | None, first: int
) -> None:
    retained = OutputFiles(tmp_path, PIPES)
    for number in range(5):
        put(retained, number % 2, b"x" * 1000)
        retained.cover()
    retained.drop(1500, before=before)

    assert retained.first == first
    assert [event.seq for event in events(retained)] == list(range(first, 6))
    retained.close()


def test_a_page_has_at_least_one_piece(tmp_path: Path) -> None:
    retained = OutputFiles(tmp_path, (OutputStream.PTY,))
    for _ in range(3):
        put(retained, 0, b"x" * 10)
        retained.cover()

    sizes = {limit: len(events(retained, bytes_max=limit)) for limit in (0, 9, 10, 19, 20, 99)}
    assert sizes == {0: 1, 9: 1, 10: 1, 19: 1, 20: 2, 99: 3}
    retained.remove()
    assert not tmp_path.exists()
