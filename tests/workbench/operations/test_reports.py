"""Reports are files that anyone can open later."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.workbench.failures import PublishedChanged
from holdfast.workbench.operations.report_page import OperationReport, report_record
from holdfast.workbench.operations.reports import redacted_wire, report, reports
from holdfast.workbench.records import WorkbenchRecords
from holdfast.world.failures import DiskOccupied
from tests.workbench.pages import record_in

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DONE = OperationReport(deed="publish", at=AT, project="/p", key="k1")


@pytest.mark.promise("W11")
def test_a_report_is_a_page_with_its_record(tmp_path: Path) -> None:
    records = WorkbenchRecords.open(tmp_path)
    assert reports(records) == ()
    page = report(records, DONE)
    assert page.read_text().startswith("<!doctype html>")
    assert record_in(page.read_text()) == report_record(DONE)
    assert list(page.parent.iterdir()) == [page]
    assert page.name.startswith("20260102T030405Z-publish-")
    assert page.stat().st_mode & 0o077 == 0


def test_the_same_report_is_there_once(tmp_path: Path) -> None:
    records = WorkbenchRecords.open(tmp_path)
    first = report(records, DONE)
    assert report(records, DONE) == first
    later = report(records, OperationReport(deed="restore", at=AT.replace(year=2027), project="/p"))
    assert reports(records) == (first, later)


def test_where_no_report_can_be_the_disk_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "meta").write_text("")
    with pytest.raises(DiskOccupied):
        report(WorkbenchRecords.open(tmp_path / "meta"), DONE)


@pytest.mark.promise("T6")
def test_a_failure_is_told_without_secrets() -> None:
    failure = PublishedChanged(paths=("sk-proj-" + "a1B2" * 12,)).during("publish")
    wire = redacted_wire(failure)
    assert (wire["code"], wire["phase"]) == ("CONFLICT_PUBLISHED_CHANGED", "publish")
    assert "a1B2a1B2" not in json.dumps(wire)
