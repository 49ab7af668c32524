"""Reports of what was done, and of why nothing was, never stand in the way of either."""

from __future__ import annotations

import pytest

from holdfast.workbench.failures import PublishedChanged
from holdfast.workbench.operations.recovery import OperationKind
from holdfast.workbench.operations.reports import report_done, report_failed
from tests.workbench.benches import Bench
from tests.workbench.pages import record_in


@pytest.mark.promise("W11")
def test_both_leave_a_page_with_a_record(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        kept = handle.look()
        report_done(handle, OperationKind.RESTORE, {"key": "k"}, (), undo=kept)
        report_failed(
            handle, OperationKind.PUBLISH, PublishedChanged(paths=("a",)), draft="draft_x"
        )

    reports = layered.workbench.directory / "meta" / "reports"
    failed, done = sorted(reports.iterdir(), key=lambda path: path.name.split("-")[1])
    assert record_in(done.read_text())["kept"] == [f"holdfast restore {kept.id}"]
    assert record_in(failed.read_text())["error"]["code"] == "CONFLICT_PUBLISHED_CHANGED"


def test_one_that_cannot_be_written_hides_nothing(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        kept = handle.look()
        meta = layered.workbench.directory / "meta"
        meta.write_bytes(b"no directory")

        report_done(handle, OperationKind.RESTORE, {"key": "k"}, (), undo=kept)
        report_failed(handle, OperationKind.PUBLISH, PublishedChanged(paths=("a",)))
