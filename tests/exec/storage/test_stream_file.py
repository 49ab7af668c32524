"""What is kept of a stream is read as it was put there, from a file that grows and from a ring."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.exec.output_index import RING_UNIT
from holdfast.exec.storage.splice import MOVE_BYTES_MAX, enlarge_pipe, move
from holdfast.exec.storage.stream_file import STEPS, StreamFile, limit_of, ring_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no splice here")

RING = 5 * RING_UNIT
FULL = RING - 2 * MOVE_BYTES_MAX  # what is kept at most
NOISE = Random(0).randbytes(RING + 4099)
NAMES = count()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "stream")


@pytest.fixture
def ring(path: str) -> Iterator[StreamFile]:
    made = ring_at(path)
    yield made
    made.close()


def ring_at(path: str) -> StreamFile:
    file = StreamFile(path)
    file.make()
    file.begin_ring(RING, file.opened_again())
    return file


def held(ring: StreamFile) -> int:
    """What the keeper would have of it."""
    return os.dup(ring.place().file)


def content(size: int, offset: int) -> bytes:
    """What stands there in a stream that repeats itself later than a ring does."""
    begin = offset % len(NOISE)
    return (NOISE[begin : begin + size] + NOISE)[:size]


def put(file: StreamFile, size: int) -> int:
    """Put so much more of the stream there, the way output comes, as far as there is room."""
    source, end = os.pipe()
    enlarge_pipe(end)
    while size and (room := file.place().room):
        part = min(size, room)
        os.write(end, content(part, file.size))
        assert move(source, file.place()) == part
        file.grew(part)
        size -= part
    os.close(end)
    os.close(source)
    return size


def read(file: StreamFile, size: int, offset: int) -> bytes:
    """What it says that it has put out there."""
    memory = memoryview(bytearray(size))
    return bytes(memory[: file.read(memory, offset)])


def test_a_file_is_made_when_it_is_needed(path: str) -> None:
    file = StreamFile(path)
    assert (file.is_there, file.size, os.path.exists(path)) == (False, 0, False)

    file.make()
    assert put(file, 20) == 0
    file.close()
    again = StreamFile(path)
    assert (again.is_there, again.size, read(again, 5, 10)) == (True, 20, content(5, 10))
    again.close()
    again.close()


def test_a_file_that_grows_becomes_a_ring_without_a_change(path: str) -> None:
    file = StreamFile(path)
    file.make()
    put(file, FULL)
    position = file.opened_again()
    os.lseek(position, file.size, os.SEEK_SET)
    file.begin_ring(RING, position)

    assert read(file, FULL, 0) == content(FULL, 0)
    assert file.place().room == 0
    file.drop(RING_UNIT, 1)
    assert put(file, 99 * RING_UNIT) == 98 * RING_UNIT
    assert read(file, FULL, RING_UNIT) == content(FULL, RING_UNIT)
    file.close()


def test_what_is_kept_is_never_written_over(ring: StreamFile) -> None:
    assert put(ring, RING) == RING - FULL
    assert ring.place().room == 0
    ring.drop(100, 1)
    assert ring.place().room == 100
    assert put(ring, 200) == 100
    assert read(ring, FULL, 100) == content(FULL, 100)


def test_the_position_tells_what_was_moved_by_one_who_was_killed(path: str) -> None:
    ring = ring_at(path)
    covered = 0
    for size in (10, FULL - 10, MOVE_BYTES_MAX, RING_UNIT + 1, 3, MOVE_BYTES_MAX):
        ring.drop(max(0, ring.size + size - FULL), 1)
        assert put(ring, size) == 0
        held = os.dup(ring._position or -1)  # as the keeper holds it
        found = StreamFile(path, held)
        found.take_up_ring(RING, covered)
        assert found.size == ring.size
        assert read(found, size, covered) == content(size, covered)
        found.close()
        covered = ring.size
    lost = StreamFile(path)  # its keeper is gone, too
    lost.take_up_ring(RING, covered)
    assert lost.size == covered
    lost.close()
    ring.close()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 3 * RING_UNIT), max_size=12))
def test_whatever_is_put_and_dropped_the_newest_is_there(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    ring = ring_at(str(tmp_path_factory.getbasetemp() / f"ring{next(NAMES)}"))
    for size in sizes:
        put(ring, size)
        first = max(0, ring.size - FULL)
        assert read(ring, ring.size - first, first) == content(ring.size - first, first)
        ring.drop(max(0, ring.size - RING_UNIT), 1)
    assert os.fstat(ring.place().file).st_size <= RING
    ring.close()


@pytest.mark.parametrize("limit", [1, 10**6, 16 * 2**20, 64 * 2**20 + 1, 10**9])
def test_a_ring_has_room_for_what_it_is_to_keep(limit: int) -> None:
    ring = ring_for(limit)

    assert ring % RING_UNIT == 0
    assert limit <= limit_of(ring)
    assert ring - 2 * MOVE_BYTES_MAX - (limit + limit // STEPS) >= MOVE_BYTES_MAX


def test_there_is_no_ring_without_end() -> None:
    assert ring_for(2**40) == 0
