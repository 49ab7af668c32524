"""Say where a project stands, and right what was interrupted."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.project import at_work
from holdfast.cli.render.publications import recovered_record
from holdfast.cli.render.status import (
    DraftStanding,
    LastFailure,
    Standing,
    status_page,
    status_record,
)
from holdfast.workbench import WorkbenchRecords, WorkbenchStatus, checkpoints
from holdfast.workbench import status as stand
from holdfast.workbench.model import Checkpoint, Occasion

_FAILED = "_failed"
_WELL = ("published", "restored")  # what a person wanted, and got


def status(request: Request, settings: Settings) -> Outcome:
    """Say where the project stands."""
    with at_work(request, settings) as project:
        records = project.workbench.directory / "meta"
        every = checkpoints(project.workbench)
        kept = [each for each in every if each.occasion is not Occasion.AUTO]
        standing = replace(
            _standing(stand(project.workbench), kept),
            records=str(records) if records.is_dir() else "",
            failure=_last_failure(records),
        )
    if request.is_json:
        return Outcome(answer=json_line(status_record(standing)))
    page = status_page(standing, look_for(sys.stdout, request, settings), now=time.time())
    return Outcome(answer=page)


def recover(request: Request, settings: Settings) -> Outcome:
    """Finish or undo what was interrupted; that is done, and told, before any command."""
    with at_work(request, settings) as project:
        found = project.righted
    if request.is_json:
        return Outcome(answer=json_line(recovered_record(found)))
    return Outcome(hint="" if found else "Nothing was interrupted.")


def _last_failure(records: Path) -> LastFailure | None:
    """What went wrong last, unless something has gone well since."""
    for event in reversed(WorkbenchRecords.open(records).events()):
        if event.kind in _WELL:
            return None
        if event.kind.endswith(_FAILED):
            wire = msgspec.convert(event.facts.get("error", {}), dict[str, object])
            deed = event.kind.removesuffix(_FAILED)
            return LastFailure(at_ms=event.at_ms, deed=deed, wire=wire)
    return None


def _standing(found: WorkbenchStatus, kept: Sequence[Checkpoint]) -> Standing:
    return Standing(
        id=found.id,
        project=str(found.project),
        drafts=tuple(
            DraftStanding(
                draft=each.draft,
                changed=each.changed,
                ignored=each.ignored,
                conflicts=each.conflicts,
                merges=each.merges,
                processes=each.processes,
            )
            for each in found.drafts
        ),
        checkpoints=len(kept),
        last=kept[0] if kept else None,
        damaged=tuple(each.user_message for each in found.damaged),
    )
