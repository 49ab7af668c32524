"""Reports of what was done or failed: a page with a record of each, kept with the project."""

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
    """Keep a report and return its page; said twice, it is there once."""
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
    """The pages of all reports, oldest first."""
    directory = records.directory / REPORTS
    names = records.disk.names(directory) if directory.is_dir() else []
    return tuple(directory / name for name in names if name.endswith(".html"))


def redacted_wire(failure: Failure) -> Mapping[str, object]:
    """A failure as it may be written down: in its wire form, without secrets."""
    return telemetry.ValueRedactor(telemetry.Redactor().text).mapping(to_wire(failure))


def _name(report: OperationReport) -> str:
    """A name that sorts by time and is the same for the same report."""
    said = f"{report.deed}\0{report.key}\0{report.draft}\0{report.checkpoint}\0{report.at}"
    mark = blake2b(os.fsencode(said), digest_size=_MARK_BYTES).hexdigest()
    return f"{report.at:%Y%m%dT%H%M%SZ}-{report.deed}-{mark}"


# Leave a report of what was done to a project, or of why nothing was.


def report_done(
    handle: WorkbenchHandle,
    deed: OperationKind,
    facts: Facts,
    changes: tuple[PathChange, ...],
    *,
    undo: Checkpoint,
) -> None:
    """Leave a report of what was done, and of what takes it back.

    It is done whatever becomes of the report: a full disk is no reason to say otherwise.
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
    """Leave a report of why nothing was done, and an event; the failure matters more than both."""
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
