"""Make, list, show and compare checkpoints."""

from __future__ import annotations

import os
import sys
import time
from tempfile import TemporaryFile

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.checkpoint_page import (
    checkpoint_page,
    checkpoint_record,
    checkpoints_page,
    made_page,
    uncovered_record,
)
from holdfast.cli.core.draft_page import SCHEMA
from holdfast.cli.draft_diff import is_patch_wanted, shown, told
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import Project, at_work, refuse
from holdfast.workbench import NOW, checkpoint, checkpoints, compare, show
from holdfast.workbench.core.keeping import PREFIX
from holdfast.workbench.model import Occasion


def create(request: Request, settings: Settings) -> Outcome:
    """Keep the project as it is."""
    with at_work(request, settings) as project:
        made = checkpoint(project.workbench, request.value("--message") or "")
    if request.is_json:
        return Outcome(answer=json_line(checkpoint_record(made)))
    return Outcome(answer=made_page(made, look_for(sys.stdout, request, settings)))


def listing(request: Request, settings: Settings) -> Outcome:
    """List what there is to go back to."""
    with at_work(request, settings) as project:
        found = checkpoints(project.workbench)
    if not request.has("--all"):
        found = tuple(each for each in found if each.occasion is not Occasion.AUTO)
    if request.is_json:
        return Outcome(answer="".join(json_line(checkpoint_record(each)) for each in found))
    look = look_for(sys.stdout, request, settings)
    hint = "" if found else "No checkpoints yet. Make one: holdfast checkpoint create"
    return Outcome(answer=checkpoints_page(found, look, now=time.time()), hint=hint)


def showing(request: Request, settings: Settings) -> Outcome:
    """Show one checkpoint, and what it does not cover."""
    if request.argument is None:
        refuse("say which checkpoint; holdfast checkpoint list shows them", request)
    with at_work(request, settings) as project:
        found = show(project.workbench, request.argument)
    if request.is_json:
        record = checkpoint_record(found.checkpoint)
        return Outcome(answer=json_line({**record, "uncovered": uncovered_record(found.uncovered)}))
    look = look_for(sys.stdout, request, settings)
    page = checkpoint_page(found.checkpoint, found.uncovered, look, now=time.time())
    return Outcome(answer=page)


def comparing(request: Request, settings: Settings) -> Outcome:
    """Show what changed between two checkpoints, or since one."""
    if not request.words:
        refuse("say which checkpoint; holdfast checkpoint list shows them", request)
    before, *words = request.words
    with at_work(request, settings) as project, TemporaryFile() as patch:
        is_since = not words or _is_path(project, words[0])
        after = NOW if is_since else words.pop(0)
        record = {"schema": SCHEMA, "type": "comparison", "before": before, "after": after}
        wanted = patch if is_patch_wanted(request) else None
        paths = project.paths(words)
        found = compare(project.workbench, before, after, paths, patch=wanted)
        return told(request, settings, shown(found), record, patch)


def _is_path(project: Project, word: str) -> bool:
    """Whether a word that may be a checkpoint is the path of something in the project."""
    is_checkpoint = word == NOW or word.startswith(f"{PREFIX}_")
    return not is_checkpoint and os.path.lexists(project.here / word)
