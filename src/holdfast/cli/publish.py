"""Publish a draft, after showing what that would change."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.confirming import confirmed
from holdfast.cli.core.changed_page import ChangedFile, stat_page
from holdfast.cli.core.done_page import (
    ASK,
    Done,
    conflicts_page,
    done_page,
    done_record,
    overwritten_page,
)
from holdfast.cli.draft_diff import shown
from holdfast.cli.failures import PublishUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import Project, at_work, refuse
from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench import Published, PublishOrder, Review, review
from holdfast.workbench import publish as published
from holdfast.workbench.failures import DraftMerged, DraftMovedOn, PublishedChanged

_NEXT = {
    PublishedChanged.code: "  holdfast publish --force PATH   takes the draft's of such a file\n"
    "  holdfast publish --only PATH    publishes others",
    DraftMerged.code: "  holdfast draft diff, then holdfast publish",
    DraftMovedOn.code: "  holdfast draft diff, then holdfast publish",
}
_Hunks = dict[RelativePath, frozenset[int]]


def publish(request: Request, settings: Settings) -> Outcome:
    """Let the project have what a draft changed, or a part of it."""
    with at_work(request, settings) as project:
        only, hunks = _only(request, project), _hunks(request, project)
        force = project.paths(request.values("--force"))
        found = review(project.workbench, request.value("--draft"))
        chosen = _chosen(found, only, hunks)
        if chosen and not request.has("--yes"):
            project.progress.clear()
            clashes = _clashes(found, chosen)
            failure = _refused(clashes, force) or _unconfirmed(
                request, settings, project, _Question(chosen, found.merges, clashes)
            )
            if failure is not None:
                return _failed(request, failure)
        order = PublishOrder(
            draft=found.draft.id,
            only=only,
            hunks=hunks,
            force=force,
            with_git=request.has("--git"),
            sealed=found.seal,
        )
        try:
            done = _done(published(project.workbench, order))
        except (PublishedChanged, DraftMerged, DraftMovedOn) as raised:
            return _failed(request, raised)
    if request.is_json:
        return Outcome(answer=json_line(done_record(done)))
    return Outcome(answer=done_page(done, look_for(sys.stdout, request, settings)))


def _only(request: Request, project: Project) -> tuple[RelativePath, ...] | None:
    words = request.values("--only")
    return (project.paths(words) or None) if words else None


def _hunks(request: Request, project: Project) -> _Hunks:
    """Of each file the numbers of the changes that are meant."""
    found: _Hunks = {}
    for word in request.values("--hunk"):
        number, _, name = word.partition(":")
        path = project.path(name) if name else None
        if path is None or not (number.isascii() and number.isdigit()):
            refuse(f"--hunk: {word} is no number and file, as in 2:src/main.c", request)
        found[path] = found.get(path, frozenset()) | {int(number)}
    return found


def _chosen(
    found: Review, only: Sequence[RelativePath] | None, hunks: _Hunks
) -> tuple[ChangedFile, ...]:
    files = shown(found.files)
    if only is None and not hunks:
        return files
    meant = (*(only or ()), *hunks)
    return tuple(each for each in files if any(each.path.within(path) for path in meant))


def _clashes(found: Review, chosen: Sequence[ChangedFile]) -> list[RelativePath]:
    meant = {each.path for each in chosen}
    return [each.path for each in found.conflicts if each.path in meant]


def _refused(clashes: Sequence[RelativePath], force: Sequence[RelativePath]) -> Failure | None:
    """What nobody needs to be asked about, because it will not be published like that."""
    open_ones = [path for path in clashes if not any(path.within(each) for each in force)]
    return PublishedChanged(paths=tuple(map(str, open_ones))) if open_ones else None


class _Question(NamedTuple):
    """What a person is asked about: what changes, what is merged first, what is overwritten."""

    chosen: Sequence[ChangedFile]
    merges: Sequence[RelativePath]
    overwritten: Sequence[RelativePath]


def _unconfirmed(
    request: Request, settings: Settings, project: Project, question: _Question
) -> Failure | None:
    """Ask, after showing what would change; a failure unless the answer is yes."""
    look = look_for(sys.stderr, request, settings)
    page = stat_page(question.chosen, look) + conflicts_page((), question.merges, look)
    page += overwritten_page(question.overwritten, look)
    if not request.is_json and confirmed(page, ASK):
        return None
    return PublishUnconfirmed(count=len(question.chosen), project=str(project.workbench.project))


def _failed(request: Request, failure: Failure) -> Outcome:
    if request.is_json:
        raise failure
    return Outcome(failure=failure, hint=_NEXT.get(failure.code, ""))


def _done(published: Published) -> Done:
    return Done(
        deed="publish",
        key=published.key,
        undo=published.checkpoint,
        paths=published.paths,
        count=published.count,
        draft=published.draft,
        remaining=published.remaining,
        rescued=published.rescued,
    )
