"""Show what a draft would change, or what changed otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.changed_page import (
    ChangedFile,
    changed_record,
    diff_page,
    raw_diff,
    stat_page,
)
from holdfast.cli.core.checkpoint_page import uncovered_record
from holdfast.cli.core.done_page import conflicts_page
from holdfast.cli.core.draft_page import SCHEMA
from holdfast.cli.failures import OutputLost
from holdfast.cli.model import Outcome
from holdfast.cli.output import abandon, is_terminal, write_bytes
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work
from holdfast.nouns import printable
from holdfast.workbench import FileDiff, Review, review


def diff(request: Request, settings: Settings) -> Outcome:
    """Show what publishing a draft would change."""
    with at_work(request, settings) as project:
        paths = project.paths(request.words)
        found = review(project.workbench, request.value("--draft"), paths)
    record: dict[str, object] = {
        "schema": SCHEMA,
        "type": "diff",
        "draft": found.draft.id,
        "seal": found.seal,
        "withheld": list(map(str, found.withheld)),
        "conflicts": [
            {"path": str(each.path), "reason": each.reason.value} for each in found.conflicts
        ],
        "merges": list(map(str, found.merges)),
        "uncovered": uncovered_record(found.uncovered),
    }
    outcome = told(request, settings, shown(found.files), record)
    return (
        outcome
        if request.is_json
        else Outcome(answer=outcome.answer, hint=_hint(request, settings, found))
    )


def shown(diffs: Iterable[FileDiff]) -> tuple[ChangedFile, ...]:
    """What changed, as it is laid out."""
    return tuple(
        ChangedFile(
            path=each.path,
            before=each.before,
            after=each.after,
            added=each.added,
            removed=each.removed,
            hunks=each.hunks,
            text=each.text,
            lines_left_out=each.lines_left_out,
            is_binary=each.is_binary and any(one and one.size for one in (each.before, each.after)),
        )
        for each in diffs
    )


def told(
    request: Request,
    settings: Settings,
    files: Sequence[ChangedFile],
    record: Mapping[str, object],
) -> Outcome:
    """Changes for whoever reads them: a person, a program, or `patch`."""
    has_text = not request.has("--stat")
    if request.is_json:
        lines = [changed_record(each, has_text=has_text) for each in files]
        return Outcome(answer=json_line({**record, "files": lines}))
    look = look_for(sys.stdout, request, settings)
    if not has_text:
        return Outcome(answer=stat_page(files, look))
    if is_terminal(sys.stdout):
        return Outcome(answer=diff_page(files, look))
    emit_bytes(raw_diff(files))
    return Outcome()


def emit_bytes(data: bytes) -> None:
    """Write to standard output as it is; raise OutputLost if it took no more."""
    try:
        write_bytes(data)
    except OSError as error:
        abandon(1)
        raise OutputLost(reason=error.strerror or str(error)) from error


def _hint(request: Request, settings: Settings, found: Review) -> str:
    look = look_for(sys.stderr, request, settings)
    pairs = [(each.path, each.reason.value.replace("_", " ")) for each in found.conflicts]
    page = conflicts_page(pairs, found.merges, look)
    if found.withheld:
        page += "Not published unless asked for (--git): .git\n"
    if not found.files and not page:
        page = f"{printable(found.draft.id)} changes nothing."
    return page.rstrip("\n")
