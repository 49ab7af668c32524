"""An index is the same in memory and in its file, and settles whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.exec.model import Closed, Exited, Output
from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage.retention import OutputFiles
from holdfast.exec.storage.stream_file import EndRecord, IndexFile

PIPES = (OutputStream.STDOUT, OutputStream.STDERR)


def test_what_was_written_is_read_before_and_after_it_settles(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "index"
    index = IndexFile(str(path))
    index.write(b"head", 0)
    index.write(b"rest", 4)
    index.write(b"HE", 0)
    index.punch(0, 4)  # there is no disk yet to give anything back to

    for is_settled in (False, True):
        assert (index.is_settled, path.exists()) == (is_settled, is_settled)
        assert (index.size, index.read(4, 2), index.read(9, 6)) == (8, b"adre", b"st")
        index.settle()
    index.settle()
    index.write(b"more", 8)
    index.close()
    index.close()

    assert path.read_bytes() == b"HEadrestmore"
    again = IndexFile(str(path))
    assert (again.is_settled, again.size) == (True, 12)
    again.close()


@given(
    writes=st.lists(st.tuples(st.binary(max_size=9), st.integers(0, 40)), max_size=9),
    reads=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 50)), min_size=1, max_size=9),
)
def test_whatever_was_written_last_all_reads_as_it_stands_in_the_file(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[bytes, int]],
    reads: list[tuple[int, int]],
) -> None:
    path = tmp_path_factory.mktemp("index") / "index"
    index = IndexFile(str(path))
    index.settle()
    for data, place in writes:
        index.write(data, place)
        stands = path.read_bytes()
        for size, begin in reads:
            assert index.read(size, begin) == stands[begin : begin + size]
    index.close()


def test_nobody_else_may_look(tmp_path: Path) -> None:
    index = IndexFile(str(tmp_path / "a" / "index"))
    index.settle()
    index.close()

    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")} == {0}


def test_a_disk_that_refuses_leaves_it_in_memory(tmp_path: Path) -> None:
    index = IndexFile(str(tmp_path / "file" / "index"))
    index.write(b"head", 0)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        index.settle()

    assert (index.is_settled, index.read(4, 0)) == (False, b"head")


@pytest.mark.promise("X13")
@pytest.mark.parametrize("torn", [None, 0, 32, 40])
def test_what_was_told_of_a_silent_one_stays_true_when_it_speaks_after_all(
    tmp_path: Path, torn: int | None
) -> None:
    """Its writer may die before, while, or after the index gets its file."""
    noted: list[tuple[int, bool]] = []
    directory = tmp_path / "k"
    retained = OutputFiles(directory, PIPES, EndRecord(lambda *how: noted.append(how)))
    retained.note_exit(3)
    assert (noted, directory.exists()) == ([(3, False)], False)
    assert list(retained.events(0, None, 9)) == [Exited(1, 3)]
    if torn is not None:  # it was making the file when it died
        retained.place(0)
        os.truncate(directory / "index", torn)
    retained.close()

    again = OutputFiles(directory, PIPES, EndRecord(lambda *how: noted.append(how), status=3))
    assert list(again.events(0, None, 9)) == [Exited(1, 3)]
    place = again.place(1)
    assert place.offset is not None
    again.files[1].grew(os.pwrite(place.file, b"late", place.offset))
    again.cover()
    again.note_closed()
    told = [Exited(1, 3), Output(2, OutputStream.STDERR, b"late"), Closed(3)]
    assert list(again.events(0, None, 9)) == told
    again.close()

    assert list(OutputFiles.found(directory).events(0, None, 9)) == told
    assert noted == [(3, False)]


def test_one_that_ends_without_a_word_has_no_files(tmp_path: Path) -> None:
    noted: list[tuple[int, bool]] = []
    end = EndRecord(lambda *how: noted.append(how))
    retained = OutputFiles(tmp_path / "k", PIPES, end)
    retained.note_exit(0)
    retained.note_closed()
    retained.close()
    found = OutputFiles.found(tmp_path / "k", EndRecord(end.note, status=0, is_closed=True))

    assert list(found.events(0, None, 9)) == [Exited(1, 0), Closed(2)]
    assert found.position.is_closed
    assert (noted, (tmp_path / "k").exists()) == ([(0, False), (0, True)], False)
