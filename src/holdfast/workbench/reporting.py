"""Leave a report of what was done to a project, or of why nothing was."""

from __future__ import annotations

from contextlib import suppress

from holdfast.failures import Failure
from holdfast.workbench.core.publication import Facts
from holdfast.workbench.core.report import Report
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Change, Checkpoint
from holdfast.workbench.reports import report, told
from holdfast.workbench.settling import Deed


def report_done(
    held: Held, deed: Deed, facts: Facts, changes: tuple[Change, ...], *, undo: Checkpoint
) -> None:
    """Leave a report of what was done, and of what takes it back.

    It is done whatever becomes of the report: a full disk is no reason to say otherwise.
    """
    draft = facts.get("draft")
    with suppress(Failure):
        report(
            held.records,
            Report(
                deed=deed,
                at=held.records.now(),
                project=held.bench.shown,
                key=str(facts["key"]),
                draft=None if draft is None else str(draft),
                checkpoint=undo.id,
                files=changes,
                kept=(f"holdfast restore {undo.id}",),
            ),
        )


def report_failed(
    held: Held,
    deed: Deed,
    failure: Failure,
    *,
    draft: str | None = None,
    checkpoint: str | None = None,
) -> None:
    """Leave a report of why nothing was done, and an event; the failure matters more than both."""
    facts = {"draft": draft, "checkpoint": checkpoint, "error": told(failure)}
    with suppress(Failure):
        held.records.note(f"{deed}_failed", facts)
        report(
            held.records,
            Report(
                deed=deed,
                at=held.records.now(),
                project=held.bench.shown,
                draft=draft,
                checkpoint=checkpoint,
                failure=told(failure),
            ),
        )
