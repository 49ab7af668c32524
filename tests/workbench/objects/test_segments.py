"""What is committed is found again, whatever happens to the disk."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import Failure
from holdfast.workbench.failures import ObjectDamaged
from holdfast.workbench.objects import segments as module
from holdfast.workbench.objects.formats import ObjectKind, name_of
from holdfast.workbench.objects.segments import Location, ScannedObject, Segments
from holdfast.world import Disk, SystemDisk
from holdfast.world.failures import DiskFull, DiskIo, StoreReadOnly
from holdfast.world.testing import CrashingDisk, DiskFaults, SeededRandomSource, SimulatedPowerLoss

ROOT = Path("/store")
TEXT = b"the same line again and again\n" * 50
NOISE = Random(7).randbytes(5000)


def opened(disk: Disk, root: Path = ROOT, seed: int = 1) -> Segments:
    return Segments(disk, root, SeededRandomSource(seed))


def put(segments: Segments, data: bytes, kind: ObjectKind = ObjectKind.BLOB) -> ScannedObject:
    name = name_of(kind, data)
    return ScannedObject(name, kind, segments.append(kind, name, data))


def put_together(segments: Segments, *data: bytes) -> list[ScannedObject]:
    files = {name_of(ObjectKind.BLOB, each): each for each in data}
    together = segments.append_bundle(files)
    return [ScannedObject(name, ObjectKind.BLOB, location) for name, location in together.items()]


def everything(segments: Segments) -> list[ScannedObject]:
    return [found for number in segments.numbers() for found in segments.scan(number, 0)]


@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(3 * 2**20)])
def test_what_is_put_is_read(data: bytes, tmp_path: Path) -> None:
    segments = opened(SystemDisk(), tmp_path)
    found = put(segments, data)

    assert segments.read(found.name, found.location) == (ObjectKind.BLOB, data)
    segments.commit()
    segments.close()
    again = opened(SystemDisk(), tmp_path)
    assert everything(again) == [found]
    assert again.read(found.name, found.location) == (ObjectKind.BLOB, data)
    again.close()


def test_what_compresses_takes_less_room_and_the_rest_none_more() -> None:
    segments = opened(CrashingDisk())

    assert put(segments, TEXT).location.stored_bytes < len(TEXT) // 10
    assert put(segments, NOISE).location.stored_bytes == len(NOISE)


def test_what_is_put_together_is_found_one_by_one_and_takes_less_room(tmp_path: Path) -> None:
    data = [NOISE[:1000] + b"%d" % number for number in range(20)]
    segments = opened(SystemDisk(), tmp_path)
    alone = sum(put(segments, each).location.room for each in data)
    segments.commit()
    start = segments.size(1)
    together = put_together(segments, *data)

    def read() -> list[tuple[ObjectKind, bytes]]:
        return [segments.read(found.name, found.location) for found in reversed(together)]

    assert read() == [(ObjectKind.BLOB, each) for each in reversed(data)]
    assert {segments.kind_of(found.name, found.location) for found in together} == {ObjectKind.BLOB}
    segments.commit()
    assert sum(found.location.room for found in together) == segments.size(1) - start < alone // 3
    segments.close()
    segments = opened(SystemDisk(), tmp_path)
    assert list(segments.scan(1, start)) == together
    assert read() == [(ObjectKind.BLOB, each) for each in reversed(data)]
    segments.close()


def test_what_was_put_together_and_abandoned_is_not_remembered() -> None:
    segments = opened(CrashingDisk())
    put(segments, NOISE)
    segments.commit()
    for data in (b"one", b"two"), (b"tri", b"for"):  # the second stands where the first stood
        for found in put_together(segments, *data):
            assert segments.read(found.name, found.location)[1] in data
        segments.rollback()


def test_a_commit_syncs_once_however_much_there_is() -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    put(segments, b"the first makes the segment")
    segments.commit()
    before = disk.operations
    for number in range(500):
        put(segments, b"object %d" % number)
    segments.commit()

    assert disk.operations - before == 2  # one write, one sync


def test_a_full_segment_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES_MAX", 4000)
    disk = CrashingDisk()
    segments = opened(disk)
    objects = [put(segments, Random(number).randbytes(1500)) for number in range(9)]
    segments.commit()
    segments.close()

    assert [found.location.segment for found in objects] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert everything(opened(disk.crash(3))) == objects


def test_what_is_abandoned_leaves_no_trace() -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    put(segments, NOISE)
    segments.rollback()
    assert segments.numbers() == []
    kept = put(segments, TEXT)
    segments.commit()
    put(segments, NOISE)
    segments.rollback()
    size = segments.size(1)
    later = put(segments, b"later")
    segments.commit()

    assert later.location == Location(1, size, 5, 69)
    assert everything(opened(disk)) == [kept, later]


def test_a_full_disk_stops_nothing_but_the_commit() -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    kept = put(segments, TEXT)
    segments.commit()
    put(segments, NOISE)
    disk.trouble.errors = {disk.operations + 1: errno.ENOSPC}
    with pytest.raises(DiskFull):
        segments.commit()
    segments.rollback()
    later = put(segments, b"there is room again")
    segments.commit()

    assert everything(opened(disk.crash(1))) == [kept, later]


def test_after_a_failed_sync_nothing_more_is_written() -> None:
    disk = CrashingDisk()
    segments = opened(disk)
    kept = put(segments, TEXT)
    segments.commit()
    put(segments, NOISE)
    disk.trouble.errors = {disk.operations + 2: errno.EIO}
    with pytest.raises(DiskIo):
        segments.commit()
    segments.rollback()

    with pytest.raises(StoreReadOnly) as refused:
        put(segments, b"more")
    assert refused.value == StoreReadOnly(path="/store/000001.seg", cause="DISK_IO")
    assert segments.read(kept.name, kept.location) == (ObjectKind.BLOB, TEXT)
    assert everything(opened(disk)) == [kept]


def test_every_changed_byte_is_noticed_and_spoils_one_record(tmp_path: Path) -> None:
    segments = opened(SystemDisk(), tmp_path)
    objects = [put(segments, data) for data in (b"first", TEXT[:100], NOISE[:40])]
    bundle = put_together(segments, b"this", b"or that")
    objects += [*bundle, put(segments, b"last")]
    segments.commit()
    path, whole = segments.path(1), segments.path(1).read_bytes()
    for at in range(16, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        again = opened(SystemDisk(), tmp_path)
        damaged = [found for found in objects if not _is_readable(again, found)]
        assert len(damaged) == 1 or damaged == bundle
        assert everything(again) == [found for found in objects if found not in damaged]
        again.close()
    segments.close()


def test_a_file_of_the_project_cannot_pass_for_a_record(tmp_path: Path) -> None:
    theirs = opened(SystemDisk(), tmp_path, seed=1)
    put(theirs, b"a forged checkpoint", ObjectKind.CHECKPOINT)
    theirs.commit()
    forged = theirs.path(1).read_bytes()
    theirs.close()
    theirs.path(1).unlink()

    segments = opened(SystemDisk(), tmp_path, seed=2)
    found = put(segments, forged)
    segments.commit()
    damaged = bytearray(segments.path(1).read_bytes())
    damaged[found.location.offset + 20] ^= 1
    segments.path(1).write_bytes(damaged)

    assert everything(opened(SystemDisk(), tmp_path)) == []


def test_a_segment_that_is_none_is_passed_over() -> None:
    disk = CrashingDisk()
    disk.create(ROOT / "000004.seg", mode=0o600).append(b"not a segment of ours at all")
    disk.create(ROOT / "notes.txt", mode=0o600)
    segments = opened(disk)
    found = put(segments, b"data")
    segments.commit()

    assert found.location.segment == 5
    assert everything(opened(disk)) == [found]


@given(
    steps=st.lists(st.integers(0, 9), min_size=3, max_size=25),
    lost=st.integers(1, 40),
    trouble=st.dictionaries(
        st.integers(1, 40), st.sampled_from([errno.ENOSPC, errno.EIO, errno.EDQUOT]), max_size=2
    ),
    short=st.sets(st.integers(1, 40), max_size=3),
    seed=st.integers(0, 2**16),
)
@pytest.mark.promise("W7")
def test_no_crash_loses_what_was_committed(
    steps: list[int], lost: int, trouble: dict[int, int], short: set[int], seed: int
) -> None:
    """Power fails, writes and syncs fail: a commit that returned is there, byte for byte."""
    disk = CrashingDisk(DiskFaults(errors=trouble, short_writes=short, power_lost=lost))
    promised: list[ScannedObject] = []
    with contextlib.suppress(SimulatedPowerLoss):
        _carry_out(steps, disk, promised)
    after = opened(disk.crash(seed), seed=99)

    there = {found.name: found for found in everything(after)}
    assert [there.get(found.name) for found in promised] == promised
    for found in promised:
        assert after.read(found.name, found.location)[0] is found.kind
    more = put(after, b"life goes on")
    after.commit()
    assert more in everything(after)


def _carry_out(steps: list[int], disk: CrashingDisk, promised: list[ScannedObject]) -> None:
    try:
        segments = opened(disk)
    except Failure:
        return
    waiting: list[ScannedObject] = []
    for count, step in enumerate(steps):
        try:
            data = Random(count).randbytes(40 * step) + bytes([count])
            if step < 4:
                waiting.append(put(segments, data))
            elif step < 6:
                waiting += put_together(segments, data, data + b"more", data + b"other")
            else:
                segments.commit()
                promised += waiting
                waiting = []
        except Failure:
            segments.rollback()
            waiting = []


def _is_readable(segments: Segments, found: ScannedObject) -> bool:
    try:
        segments.read(found.name, found.location)
    except ObjectDamaged:
        return False
    return True


def test_a_copy_is_read_like_the_first_and_its_segment_can_go(tmp_path: Path) -> None:
    segments = opened(SystemDisk(), tmp_path)
    objects = [put(segments, data) for data in (TEXT, NOISE)]
    segments.commit()
    segments.renew()
    copies = [one._replace(location=segments.copy(one.name, one.location)) for one in objects]
    segments.commit()

    assert segments.numbers() == [1, 2]
    segments.drop(1)
    assert everything(segments) == copies
    assert [segments.read(one.name, one.location)[1] for one in copies] == [TEXT, NOISE]
    assert segments.committed.keys() == {2}
    segments.close()


def test_what_is_spoiled_is_not_copied(tmp_path: Path) -> None:
    segments = opened(SystemDisk(), tmp_path)
    one = put(segments, NOISE)
    segments.commit()
    data = bytearray(segments.path(1).read_bytes())
    data[-1] ^= 1
    segments.path(1).write_bytes(data)

    with pytest.raises(ObjectDamaged):
        segments.copy(one.name, one.location)
    segments.close()
