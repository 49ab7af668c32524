"""What one server writes down is what the next one reads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.exec.server.records import ProcessRecord, Records, SessionRecord
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskMissing, DiskOccupied, StoreTooNew


def process(key: str, started: int) -> ProcessRecord:
    return ProcessRecord(
        key, "s", f"name {key}", ("sh", "-c", "é"), tty=True, started_at_ms=started
    )


@pytest.fixture
def records(tmp_path: Path) -> Records:
    made = Records(tmp_path / "state", SystemDisk())
    made.prepare()
    made.prepare()
    return made


def test_all_is_found_again_and_damage_is_passed_over(tmp_path: Path, records: Records) -> None:
    for record in (process("b", 2), process("a", 1), process("c", 3)):
        records.keep_process(record)
    records.keep_session(SessionRecord("s", "plain"))
    (tmp_path / "state/processes/c").rmdir()
    with (tmp_path / "state/processes.jsonl").open("ab") as file:
        file.write(b'\n{"version":1,"key":"bro')
    records.keep_process(process("d", 0))
    (tmp_path / "state/sessions/damaged").write_bytes(b"\xff{")

    assert list(records.processes()) == [process("d", 0), process("a", 1), process("b", 2)]
    assert list(records.sessions()) == [SessionRecord("s", "plain")]


def test_what_nobody_knows_is_swept_away(tmp_path: Path, records: Records) -> None:
    for key in "abc":
        records.keep_process(process(key, 1))
    records.sweep([process("b", 1)])
    records.keep_session(SessionRecord("s", "plain"))
    records.forget_session("s")
    records.forget_session("s")

    assert [path.name for path in (tmp_path / "state/processes").iterdir()] == ["b"]
    assert list(records.processes()) == [process("b", 1)]
    assert list(records.sessions()) == []


def test_nobody_else_may_look(tmp_path: Path, records: Records) -> None:
    records.keep_process(process("a", 1))
    records.keep_session(SessionRecord("s", "plain"))

    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*")}
    assert modes == {0}


def test_a_disk_that_refuses_is_named(records: Records) -> None:
    records.keep_process(process("a", 1))
    with pytest.raises(DiskOccupied), records.naming("a"):
        records.keep_process(process("a", 1))


def test_what_a_newer_server_wrote_is_not_touched(tmp_path: Path, records: Records) -> None:
    records.keep_process(process("a", 1))
    (tmp_path / "state/processes.jsonl").write_bytes(b'{"version":3,"other":"form"}')
    (tmp_path / "state/sessions/s").write_bytes(b'{"version":3}')

    for read in (records.processes, records.sessions):
        with pytest.raises(StoreTooNew):
            list(read())


def test_what_a_server_of_version_1_wrote_is_known_once_and_goes_with_its_process(
    tmp_path: Path, records: Records
) -> None:
    old = process("a", 1)
    records.directory("a").mkdir()
    (records.directory("a") / "meta.json").write_bytes(msgspec.json.encode(old))
    records.keep_process(process("b", 2))

    assert list(records.processes()) == [old, process("b", 2)]
    records.sweep(list(records.processes()))
    assert list(records.processes()) == [old, process("b", 2)]
    records.forget_process("a")
    assert list(records.processes()) == [process("b", 2)]


def test_a_place_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DiskMissing):
        Records(tmp_path / "file", SystemDisk()).prepare()
