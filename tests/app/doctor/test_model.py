"""A report, as an exit status and as JSON."""

from __future__ import annotations

import json

import pytest

from holdfast.app.doctor.model import Finding, Machine, Report, Result, Status

LINUX = Machine(system="Linux", release="6.18", name="Debian 12", family="debian")


def report(*statuses: Status) -> Report:
    results = tuple(
        Result(f"a.{number}", "A", "a", Finding(status, "found", "mend"), 0.123456)
        for number, status in enumerate(statuses)
    )
    return Report("1.2", LINUX, results)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((), 0),
        ((Status.OK, Status.WARNING, Status.SKIPPED), 0),
        ((Status.OK, Status.FAILED, Status.WARNING), 1),
    ],
)
def test_only_a_failed_check_fails(statuses: tuple[Status, ...], expected: int) -> None:
    assert report(*statuses).exit_status == expected


def test_a_report_is_one_json_object() -> None:
    assert json.loads(json.dumps(report(Status.OK, Status.FAILED).to_wire())) == {
        "schema": 1,
        "version": "1.2",
        "system": "Linux 6.18",
        "distribution": "Debian 12",
        "checks": [
            {
                "id": f"a.{number}",
                "group": "A",
                "title": "a",
                "status": status,
                "finding": "found",
                "remedy": "mend",
                "durationSeconds": 0.1235,
            }
            for number, status in enumerate(("ok", "failed"))
        ],
        "summary": {"ok": 1, "warning": 0, "failed": 1, "skipped": 0},
    }
