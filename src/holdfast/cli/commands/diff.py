"""Show what a draft would change, or what changed otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from tempfile import TemporaryFile
from typing import BinaryIO

from holdfast.app.config import publishes_ignored
from holdfast.app.settings import Settings
from holdfast.cli.commands.draft_choice import draft_meant
from holdfast.cli.declarations import Request
from holdfast.cli.failures import OutputLost
from holdfast.cli.model import Outcome
from holdfast.cli.output import abandon, is_terminal, json_line, look_for, write_bytes
from holdfast.cli.project import at_work
from holdfast.cli.render.changes import (
    ChangedFile,
    changed_record,
    diff_page,
    ignored_page,
    stat_page,
)
from holdfast.cli.render.checkpoints import uncovered_record, unpublishable_page
from holdfast.cli.render.drafts import SCHEMA
from holdfast.cli.render.publications import conflicts_page
from holdfast.nouns import printable
from holdfast.workbench import FileDiff, Review, review

_CHUNK_BYTES = 1 << 20


def diff(request: Request, settings: Settings) -> Outcome:
    """Show what publishing a draft would change."""
    with at_work(request, settings) as project, TemporaryFile() as patch:
        found = review(
            project.workbench,
            draft_meant(request, settings, project),
            project.paths(request.words),
            with_git=request.has("--git"),
            with_ignored=request.has("--ignored") or publishes_ignored(settings),
            patch=patch if is_patch_wanted(request) else None,
        )
        outcome = told(request, settings, shown(found.files), _record(found), patch)
    if request.is_json:
        return outcome
    return Outcome(answer=outcome.answer, hint=withheld_page(request, settings, found))


def _record(found: Review) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "type": "diff",
        "draft": found.draft.id,
        "seal": found.seal,
        "withheld": list(map(str, found.withheld)),
        "ignored": [{"path": top, "count": count} for top, count in found.ignored.items()],
        "conflicts": [
            {"path": str(each.path), "reason": each.reason.value} for each in found.conflicts
        ],
        "merges": list(map(str, found.merges)),
        "uncovered": uncovered_record(found.uncovered),
    }


def is_patch_wanted(request: Request) -> bool:
    """Whether standard output gets a patch: a program reads it, and nothing else was asked for."""
    return not (request.has("--stat") or request.is_json or is_terminal(sys.stdout))


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
            is_binary=each.is_binary,
            notes=each.notes,
            runs=each.runs,
        )
        for each in diffs
    )


def told(
    request: Request,
    settings: Settings,
    files: Sequence[ChangedFile],
    record: Mapping[str, object],
    patch: BinaryIO,
) -> Outcome:
    """Changes as a page, as JSON, or as a patch for `git apply`."""
    has_text = not request.has("--stat")
    if request.is_json:
        lines = [changed_record(each, has_text=has_text) for each in files]
        return Outcome(answer=json_line({**record, "files": lines}))
    look = look_for(sys.stdout, request, settings)
    if not has_text:
        return Outcome(answer=stat_page(files, look))
    if not is_patch_wanted(request):
        return Outcome(answer=diff_page(files, look))
    patch.seek(0)
    while chunk := patch.read(_CHUNK_BYTES):
        emit_bytes(chunk)
    return Outcome()


def emit_bytes(data: bytes) -> None:
    """Write to standard output as it is; raise OutputLost if it took no more."""
    try:
        write_bytes(data)
    except OSError as error:
        abandon(1)
        raise OutputLost(reason=error.strerror or str(error)) from error


def withheld_page(request: Request, settings: Settings, found: Review) -> str:
    """What a person has to know about what is not in the diff."""
    look = look_for(sys.stderr, request, settings)
    pairs = [(each.path, each.reason.value.replace("_", " ")) for each in found.conflicts]
    page = ignored_page(found.ignored, look) + conflicts_page(pairs, found.merges, look)
    if found.withheld:
        count = f"{len(found.withheld):,} path{'' if len(found.withheld) == 1 else 's'}"
        page += f"Not published unless asked for (--git): .git, {count}\n"
    page += unpublishable_page(found.uncovered, look)
    if not found.files and not page:
        page = f"{printable(found.draft.id)} changes nothing."
    return page.rstrip("\n")
