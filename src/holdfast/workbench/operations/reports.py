"""Reports of publishes, restores and failures, as HTML pages kept with the project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from holdfast import telemetry
from holdfast.failures import Failure, to_wire
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import Checkpoint, PathChange
from holdfast.workbench.operations.recovery import OperationKind
from holdfast.workbench.operations.report_page import OperationReport, report_page
from holdfast.workbench.records import WorkbenchRecords
from holdfast.workbench.transaction.machine import Facts
from holdfast.world import disk_failure, make_private, replace_file

REPORTS: Final = "reports"
_MARK_BYTES: Final = 4


def report(records: WorkbenchRecords, report: OperationReport) -> Path:
    """Write a report and return its path; idempotent."""
    directory = records.directory / REPORTS
    if not directory.is_dir():
        try:
            make_private(directory)
        except OSError as error:
            raise disk_failure(error, path=str(directory)) from error
    page = report_page(report).encode("utf-8", "backslashreplace")
    path = directory / f"{_name(report)}.html"
    replace_file(records.disk, path, [page])
    return path


def reports(records: WorkbenchRecords) -> tuple[Path, ...]:
    """Paths of all reports, oldest first."""
    directory = records.directory / REPORTS
    names = records.disk.names(directory) if directory.is_dir() else []
    return tuple(directory / name for name in names if name.endswith(".html"))


def redacted_wire(failure: Failure) -> Mapping[str, object]:
    """Wire form of a failure, with secrets redacted."""
    return telemetry.ValueRedactor(telemetry.Redactor().text).mapping(to_wire(failure))


def _name(report: OperationReport) -> str:
    """File name that sorts by time and is stable for one report."""
    said = f"{report.deed}\0{report.key}\0{report.draft}\0{report.checkpoint}\0{report.at}"
    mark = blake2b(os.fsencode(said), digest_size=_MARK_BYTES).hexdigest()
    return f"{report.at:%Y%m%dT%H%M%SZ}-{report.deed}-{mark}"


def report_done(
    handle: WorkbenchHandle,
    deed: OperationKind,
    facts: Facts,
    changes: tuple[PathChange, ...],
    *,
    undo: Checkpoint,
) -> None:
    """Write a report of a finished operation, with the command that undoes it.

    Errors are ignored: the operation has succeeded.
    """
    draft = facts.get("draft")
    with suppress(Failure):
        report(
            handle.records,
            OperationReport(
                deed=deed,
                at=handle.records.now(),
                project=handle.context.display_path,
                key=str(facts["key"]),
                draft=None if draft is None else str(draft),
                checkpoint=undo.id,
                files=changes,
                kept=(f"holdfast restore {undo.id}",),
            ),
        )


def report_failed(
    handle: WorkbenchHandle,
    deed: OperationKind,
    failure: Failure,
    *,
    draft: str | None = None,
    checkpoint: str | None = None,
) -> None:
    """Write a report and an event for a failure; errors must not mask it."""
    facts = {"draft": draft, "checkpoint": checkpoint, "error": redacted_wire(failure)}
    with suppress(Failure):
        handle.records.note(f"{deed}_failed", facts)
        report(
            handle.records,
            OperationReport(
                deed=deed,
                at=handle.records.now(),
                project=handle.context.display_path,
                draft=draft,
                checkpoint=checkpoint,
                failure=redacted_wire(failure),
            ),
        )
