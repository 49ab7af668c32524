"""Resolve what a draft and its project both changed, and print versions of a file."""

from __future__ import annotations

import sys
from base64 import b64encode

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.draft_page import SCHEMA
from holdfast.cli.core.merge_page import ShownMerge, merge_page, merge_record
from holdfast.cli.draft_choose import draft_meant
from holdfast.cli.draft_diff import emit_bytes
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work, refuse
from holdfast.nouns import printable
from holdfast.workbench import Side, Version, file_version, merge_draft

_PROJECT, _DIRECTORY = "--project", "-C"


def merging(request: Request, settings: Settings) -> Outcome:
    """Bring the project's newer files into a draft."""
    if request.has("--ours") and request.has("--theirs"):
        refuse("--ours and --theirs exclude each other", request)
    side = Side.OURS if request.has("--ours") else Side.BOTH
    side = Side.THEIRS if request.has("--theirs") else side
    with at_work(request, settings) as project:
        paths = project.paths(request.words)
        found = merge_draft(project.workbench, draft_meant(request, settings, project), paths, side)
    shown = ShownMerge(
        draft=found.draft,
        merged=found.merged,
        marked=found.marked,
        taken=found.taken,
        unresolved=found.unresolved,
    )
    if request.is_json:
        return Outcome(answer=json_line(merge_record(shown)))
    return Outcome(answer=merge_page(shown, look_for(sys.stdout, request, settings)))


def showing(request: Request, settings: Settings) -> Outcome:
    """Print one version of a file."""
    if request.argument is None:
        refuse("say which file", request)
    if request.has(_PROJECT) and request.has("--base"):
        refuse("--project and --base exclude each other", request)
    version = Version.BASE if request.has("--base") else Version.DRAFT
    version = Version.PROJECT if request.has(_PROJECT) else version
    with at_work(_located(request), settings) as project:
        path = project.path(request.argument)
        if path is None:
            refuse("say which file; that is the whole project", request)
        found = file_version(
            project.workbench, path, version, draft_meant(request, settings, project)
        )
    if request.is_json:
        record = {
            "schema": SCHEMA,
            "type": "version",
            "draft": found.draft,
            "version": version.value,
            "path": str(path),
            "kind": found.entry.sort.value,
            "mode": f"{found.entry.mode:o}",
            "contentBase64": b64encode(found.content).decode(),
        }
        return Outcome(answer=json_line(record))
    if is_terminal(sys.stdout):
        text = found.content.decode("utf-8", "backslashreplace")
        lines = (printable(line, keep="\t") for line in text.splitlines())
        return Outcome(answer="".join(f"{line}\n" for line in lines))
    emit_bytes(found.content)
    return Outcome()


def _located(request: Request) -> Request:
    """The request as other commands spell it: here --project is a version, not a directory."""
    given = tuple(
        (_PROJECT if flag == _DIRECTORY else flag, value)
        for flag, value in request.given
        if flag != _PROJECT
    )
    return request._replace(given=given)
