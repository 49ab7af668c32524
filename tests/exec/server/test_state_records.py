"""What one server writes down is what the next one reads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast.exec.server.state_records import (
    ProcessRecord,
    SessionRecord,
    StateRecords,
    make_files,
    remove_files,
)
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskMissing, DiskUnusable, StoreTooNew


def process(key: str, started: int) -> ProcessRecord:
    return ProcessRecord(
        key, "s", f"name {key}", ("sh", "-c", "é"), tty=True, started_at_ms=started
    )


@pytest.fixture
def records(tmp_path: Path) -> StateRecords:
    made = StateRecords(tmp_path / "state", SystemDisk())
    made.prepare()
    made.prepare()
    return made


def test_all_is_found_again_and_damage_is_passed_over(
    tmp_path: Path, records: StateRecords
) -> None:
    for record in (process("b", 2), process("a", 1), process("c", 3)):
        records.keep_process(record)
    records.keep_session(SessionRecord("s", "plain"))
    remove_files(records.forget_process("c"))
    with (tmp_path / "state/processes.jsonl").open("ab") as file:
        file.write(b'\n{"version":1,"key":"bro')
    records.keep_process(process("d", 0))
    (tmp_path / "state/sessions/damaged").write_bytes(b"\xff{")

    assert list(records.processes()) == [process("d", 0), process("a", 1), process("b", 2)]
    assert list(records.sessions()) == [SessionRecord("s", "plain")]


def test_what_nobody_knows_is_swept_away(tmp_path: Path, records: StateRecords) -> None:
    for key in "abc":
        records.keep_process(process(key, 1)).mkdir()
    records.sweep([process("b", 1)])
    records.keep_session(SessionRecord("s", "plain"))
    records.forget_session("s")
    records.forget_session("s")

    assert [path.name for path in (tmp_path / "state/processes").iterdir()] == ["b"]
    assert list(records.processes()) == [process("b", 1)]
    assert list(records.sessions()) == []


def test_nobody_else_may_look(tmp_path: Path, records: StateRecords) -> None:
    records.keep_process(process("a", 1))
    records.keep_session(SessionRecord("s", "plain"))

    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*")}
    assert modes == {0}


def test_a_disk_that_refuses_is_named(tmp_path: Path, records: StateRecords) -> None:
    (tmp_path / "state/processes.jsonl").mkdir()
    with pytest.raises(DiskUnusable), records.naming("a"):
        records.keep_process(process("a", 1))


def test_what_a_newer_server_wrote_is_not_touched(tmp_path: Path, records: StateRecords) -> None:
    records.keep_process(process("a", 1))
    (tmp_path / "state/processes.jsonl").write_bytes(b'{"version":5,"other":"form"}')
    (tmp_path / "state/sessions/s").write_bytes(b'{"version":5}')

    for read in (records.processes, records.sessions):
        with pytest.raises(StoreTooNew):
            list(read())


def test_what_a_server_of_version_1_wrote_is_known_once_and_goes_with_its_process(
    tmp_path: Path, records: StateRecords
) -> None:
    old = process("a", 1)
    records.directory("a").mkdir()
    (records.directory("a") / "meta.json").write_bytes(msgspec.json.encode(old))
    records.keep_process(process("b", 2))

    assert list(records.processes()) == [old, process("b", 2)]
    records.sweep(list(records.processes()))
    assert list(records.processes()) == [old, process("b", 2)]
    remove_files(records.forget_process("a"))
    assert list(records.processes()) == [process("b", 2)]


def test_what_a_server_of_version_2_wrote_is_known_while_it_has_a_directory(
    records: StateRecords,
) -> None:
    old = [msgspec.structs.replace(process(key, 1), version=2) for key in "ab"]
    for record in old:
        records.keep_process(record)
    records.directory("b").mkdir()

    assert list(records.processes()) == old[1:]


def test_how_one_ended_that_said_nothing_is_known_until_it_is_forgotten(
    records: StateRecords,
) -> None:
    quiet = process("a", 1)
    for record in (quiet, process("b", 2)):
        records.keep_process(record)
    records.end_of(quiet).note(9, False)
    ended = msgspec.structs.replace(quiet, status=9)
    assert list(records.processes()) == [ended, process("b", 2)]

    records.end_of(quiet).note(9, True)
    closed = msgspec.structs.replace(ended, is_closed=True)
    for _ in range(2):
        assert list(records.processes()) == [closed, process("b", 2)]
        found = records.end_of(closed)
        assert (found.status, found.is_closed) == (9, True)
        records.sweep(list(records.processes()))

    remove_files(records.forget_process("a"))
    assert list(records.processes()) == [process("b", 2)]


def test_what_is_in_rings_is_not_for_servers_of_before_until_it_is_forgotten(
    tmp_path: Path, records: StateRecords
) -> None:
    for key in "ab":
        records.keep_process(process(key, 1))
    records.end_of(process("a", 1)).note_rings()

    with_rings = msgspec.structs.replace(process("a", 1), version=4)
    for _ in range(2):
        assert list(records.processes()) == [with_rings, process("b", 1)]
        assert b'"version":4' in (tmp_path / "state/processes.jsonl").read_bytes()
        records.sweep(list(records.processes()))
    remove_files(records.forget_process("a"))
    records.sweep(list(records.processes()))
    assert b'"version":4' not in (tmp_path / "state/processes.jsonl").read_bytes()


def test_files_are_made_for_our_own_eyes_before_they_are_needed(
    tmp_path: Path, records: StateRecords
) -> None:
    for each in (process("a", 1), process("a", 1), process("b/not/there", 2)):
        make_files(records.directory(each.key), each)

    found = {path.name: path.stat().st_mode & 0o077 for path in records.directory("a").iterdir()}
    assert found == {"index": 0, "pty": 0}
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*")} == {0}


def test_a_place_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DiskMissing):
        StateRecords(tmp_path / "file", SystemDisk()).prepare()
