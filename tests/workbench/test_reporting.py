"""Reports of what was done, and of why nothing was, never stand in the way of either."""

from __future__ import annotations

import json

import pytest

from holdfast.workbench.failures import PublishedChanged
from holdfast.workbench.reporting import report_done, report_failed
from holdfast.workbench.settling import Deed
from tests.workbench.benches import Bench


@pytest.mark.promise("W11")
def test_both_leave_a_page_and_a_record(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        kept = held.look()
        report_done(held, Deed.RESTORE, {"key": "k"}, (), undo=kept)
        report_failed(held, Deed.PUBLISH, PublishedChanged(paths=("a",)), draft="draft_x")

    reports = layered.workbench.directory / "meta" / "reports"
    done, failed = sorted(reports.glob("*.json"), key=lambda path: path.name.split("-")[1])[::-1]
    assert json.loads(done.read_bytes())["kept"] == [f"holdfast restore {kept.id}"]
    assert json.loads(failed.read_bytes())["error"]["code"] == "CONFLICT_PUBLISHED_CHANGED"
    assert len(list(reports.glob("*.html"))) == 2


def test_one_that_cannot_be_written_hides_nothing(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        kept = held.look()
        meta = layered.workbench.directory / "meta"
        meta.write_bytes(b"no directory")

        report_done(held, Deed.RESTORE, {"key": "k"}, (), undo=kept)
        report_failed(held, Deed.PUBLISH, PublishedChanged(paths=("a",)))
