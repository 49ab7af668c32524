"""Segments are read as far as they are whole, whatever lies among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.workbench.failures import ObjectDamaged
from holdfast.workbench.objects.formats import SEGMENT_HEADER_BYTES, ObjectKind, name_of
from holdfast.workbench.objects.segments import Location, ScannedObject, SegmentReader, Segments
from holdfast.world import SystemDisk
from holdfast.world.testing import SeededRandomSource

DATA = [b"object %d " % number * 30 for number in range(40)]


def write(directory: Path, count: int) -> list[ScannedObject]:
    """Put objects, each into a segment of its own."""
    segments = Segments(SystemDisk(), directory, SeededRandomSource(1))
    found: list[ScannedObject] = []
    for data in DATA[:count]:
        name = name_of(ObjectKind.BLOB, data)
        found.append(
            ScannedObject(name, ObjectKind.BLOB, segments.append(ObjectKind.BLOB, name, data))
        )
        segments.commit()
        segments.renew()
    segments.close()
    return found


@pytest.fixture
def written(tmp_path: Path) -> list[ScannedObject]:
    return write(tmp_path, 6)


@pytest.fixture
def files(tmp_path: Path) -> SegmentReader:
    return SegmentReader(SystemDisk(), tmp_path)


def test_more_segments_are_read_than_can_be_open(files: SegmentReader, tmp_path: Path) -> None:
    written = write(tmp_path, len(DATA))
    for name in ("x.seg", "12.txt", "\u0661.seg"):
        (tmp_path / name).write_bytes(b"not ours")

    assert files.numbers() == list(range(1, 41))
    assert [found for number in files.numbers() for found in files.scan(number, 0)] == written
    read = [files.read(found.name, found.location)[1] for found in written]
    assert read == DATA
    assert {files.kind_of(found.name, found.location) for found in written} == {ObjectKind.BLOB}
    files.close()


def test_what_was_dropped_is_gone(written: list[ScannedObject], files: SegmentReader) -> None:
    assert files.read(written[4].name, written[4].location)[1] == DATA[4]
    files.drop(5)

    assert 5 not in files.numbers()
    files.close()


@pytest.mark.parametrize("ask", ["read", "kind_of"])
def test_another_object_does_not_pass_for_this_one(
    written: list[ScannedObject], files: SegmentReader, ask: str
) -> None:
    first, second = written[:2]
    with pytest.raises(ObjectDamaged):
        getattr(files, ask)(first.name, second.location)
    with pytest.raises(ObjectDamaged):
        getattr(files, ask)(first.name, Location(1, first.location.offset + 1, 5, 69))
    files.close()


@pytest.mark.parametrize("at", range(SEGMENT_HEADER_BYTES))
def test_a_head_that_is_spoiled_spoils_nothing_else(tmp_path: Path, at: int) -> None:
    segments = Segments(SystemDisk(), tmp_path, SeededRandomSource(1))
    for data in DATA:
        segments.append(ObjectKind.BLOB, name_of(ObjectKind.BLOB, data), data)
    segments.commit()
    segments.close()
    segment = tmp_path / "000001.seg"
    data = bytearray(segment.read_bytes())
    data[at] ^= 1
    segment.write_bytes(data)
    files = SegmentReader(SystemDisk(), tmp_path)

    assert [files.read(found.name, found.location)[1] for found in files.scan(1, 0)] == DATA
    files.close()


def test_a_length_that_nobody_wrote_is_not_believed(
    written: list[ScannedObject], files: SegmentReader, tmp_path: Path
) -> None:
    path = tmp_path / "000001.seg"
    data = bytearray(path.read_bytes())
    data[3] ^= 1  # the head of the segment
    data[16 + 24 : 16 + 32] = b"\xff" * 8  # how long its first record is
    path.write_bytes(data)

    assert list(files.scan(1, 0)) == []
    assert [found for number in (2, 3) for found in files.scan(number, 0)] == written[1:3]
    files.close()
