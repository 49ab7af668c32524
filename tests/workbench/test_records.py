"""Everything that matters is written down once, and can be read with nothing but a pager."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.workbench.consent import Consent, Scope
from holdfast.workbench.records import (
    ATTEMPTS,
    EVENTS,
    BatchAttempt,
    WorkbenchEvent,
    WorkbenchRecords,
)
from holdfast.workbench.store.store import Ports
from holdfast.world.testing import CrashingDisk, DiskFaults, ManualClock, SimulatedPowerLoss


def opened(directory: Path, at: float = 1_700_000_000.0005) -> WorkbenchRecords:
    return WorkbenchRecords.open(directory, Ports(clock=ManualClock(at)))


def lines(path: Path) -> list[object]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line["record"] for line in found if "record" in line]


@pytest.mark.promise("W11")
def test_events_are_kept_for_people_and_programs(tmp_path: Path) -> None:
    with opened(tmp_path / "meta") as records:
        noted = records.note("publish", {"files": 2, "paths": ["a", "\\x1b[31m"]})
        later = records.note("disk_full", {})
    assert opened(tmp_path / "meta").events() == (noted, later)
    assert lines(tmp_path / "meta" / EVENTS)[0] == {
        "at": "2023-11-14T22:13:20Z",
        "kind": "publish",
        "facts": {"files": 2, "paths": ["a", "\\x1b[31m"]},
        "key": None,
    }


def test_an_event_with_a_key_is_noted_once(tmp_path: Path) -> None:
    first = opened(tmp_path)
    noted = first.note("publish", {"files": 2}, key="k1")
    assert first.note("publish", {"files": 3}, key="k1") == noted
    first.close()

    again = opened(tmp_path, at=1_800_000_000.0)
    assert again.note("restore", {}, key="k1") == noted
    assert (again.outcome("k1"), again.outcome("k2")) == (noted, None)
    assert again.events() == (noted,)
    assert noted == WorkbenchEvent(at=noted.at, kind="publish", facts={"files": 2}, key="k1")
    assert noted.at_ms == 1_700_000_000_000


def test_a_new_key_is_not_looked_for_and_still_noted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as records, monkeypatch.context() as patch:
        patch.setattr(records, "events", lambda: pytest.fail("all events were read"))
        noted = records.note("publish", {"files": 2}, key="k1", is_new=True)
        assert records.note("publish", {"files": 3}, key="k1", is_new=True) == noted
        assert records.note("publish", {"files": 3}, key="k1") == noted
        assert records.outcome("k1") == noted
    assert opened(tmp_path).events() == (noted,)


def test_attempts_are_kept_in_order(tmp_path: Path) -> None:
    with opened(tmp_path) as records:
        attempts = tuple(
            BatchAttempt(at=records.now(), batch=f"b{number}", draft="dr_1", outcome="applied")
            for number in range(3)
        )
        failed = BatchAttempt(
            at=records.now(),
            batch="b3",
            draft=None,
            outcome="refused",
            paths=("a b", "ü"),
            failure="BATCH_REFUSED",
        )
        for attempt in (*attempts, failed):
            records.attempt(attempt)
    assert opened(tmp_path).attempts() == (*attempts, failed)
    assert (tmp_path / ATTEMPTS).stat().st_mode & 0o077 == 0


def test_consents_are_kept_beside(tmp_path: Path) -> None:
    given = Consent("/p", "openai", Scope(), is_given=True, at_ms=5)
    with opened(tmp_path) as records:
        records.consent(given)
    assert opened(tmp_path).consents() == (given,)


def test_who_only_reads_writes_nothing(tmp_path: Path) -> None:
    records = opened(tmp_path / "meta")
    assert (records.events(), records.attempts(), records.consents()) == ((), (), ())
    assert records.outcome("k") is None
    records.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("W11")
@pytest.mark.parametrize("moment", range(1, 30))
def test_a_key_is_noted_once_whenever_the_power_fails(moment: int, tmp_path: Path) -> None:
    disk = CrashingDisk(DiskFaults(power_lost=moment))
    noted: list[WorkbenchEvent] = []
    try:
        records = WorkbenchRecords.open(tmp_path, Ports(disk=disk, clock=ManualClock()))
        for key in ("k1", "k2"):
            noted.append(records.note("publish", {"try": 1}, key=key))
            records.close()
    except SimulatedPowerLoss:
        pass
    for seed in range(10):
        after = WorkbenchRecords.open(tmp_path, Ports(disk=disk.crash(seed), clock=ManualClock()))
        for key in ("k1", "k2"):
            after.note("publish", {"try": 2}, key=key)
        events = after.events()
        assert [event.key for event in events] == ["k1", "k2"]
        assert list(events[: len(noted)]) == noted
