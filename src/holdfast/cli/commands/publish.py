"""Publish a draft, after showing what that would change."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Final

from holdfast.app.config import publishes_ignored
from holdfast.app.settings import Settings
from holdfast.cli.commands.diff import shown, withheld_page
from holdfast.cli.commands.draft_choice import draft_meant
from holdfast.cli.declarations import Request
from holdfast.cli.failures import BranchUnconfirmed, PublishUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.project import Project, at_work, refuse
from holdfast.cli.render.branches import (
    ASK_BRANCH,
    ShownBranch,
    ShownCommit,
    ShownFile,
    branch_page,
    branch_record,
    branch_taken_page,
)
from holdfast.cli.render.changes import ignored_page, repository_page, stat_page
from holdfast.cli.render.checkpoints import uncovered_record, unpublishable_page
from holdfast.cli.render.publications import (
    ASK,
    ASK_COMMIT,
    Done,
    conflicts_page,
    done_page,
    done_record,
    overwritten_page,
)
from holdfast.cli.terminal import confirmed
from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench import (
    BranchReview,
    CommitOrder,
    PublishOrder,
    PublishResult,
    Review,
    preview,
    review_branch,
    take_branch,
)
from holdfast.workbench import publish as published
from holdfast.workbench.failures import (
    DraftMerged,
    DraftMovedOn,
    GitCommitNotMade,
    PublishedChanged,
)

# What of a publication goes into a git repository: a commit of it, or the draft's commits.

_NOT_WITH_BRANCH: Final = ("--commit", "--message", "--only", "--hunk", "--force", "--git")


def commit_order(request: Request) -> CommitOrder | None:
    """The commit that a request asks for."""
    message = request.value("--message")
    if not request.has("--commit"):
        if message is not None:
            refuse("-m is the message of a commit: add --commit", request)
        return None
    if request.has("--git"):
        refuse("--commit and --git exclude each other", request)
    if message is not None and not message.strip():
        refuse("-m: the message of a commit cannot be empty", request)
    return CommitOrder(message=message)


def require_commit(published: PublishResult) -> None:
    """Raise GitCommitNotMade if a commit was asked for and its branch does not have it."""
    commit = published.commit
    if commit is not None and commit.problem:
        raise GitCommitNotMade(
            reason=commit.problem,
            checkpoint=published.checkpoint or "",
            branch=commit.branch or "HEAD",
            commit=commit.id or "",
        )


def publish_branch(request: Request, settings: Settings) -> Outcome:
    """Take the commits of a draft as a branch, after showing them."""
    for each in _NOT_WITH_BRANCH:
        if request.has(each) or request.values(each):
            refuse(f"--branch takes commits as they are; {each} does not go with it", request)
    name = request.value("--branch") or ""
    with at_work(request, settings) as project:
        draft = draft_meant(request, settings, project)
        found = review_branch(project.workbench, name, draft)
        project.progress.clear()
        if not (request.has("--yes") or found.is_there):
            page = branch_page(_shown(found), look_for(sys.stderr, request, settings))
            if request.is_json or not confirmed(page, ASK_BRANCH):
                raise BranchUnconfirmed(count=found.count, branch=found.branch)
        taken = take_branch(project.workbench, name, found.draft, tip=found.tip)
    if request.is_json:
        return Outcome(answer=json_line(branch_record(_shown(taken))))
    return Outcome(answer=branch_taken_page(_shown(taken), look_for(sys.stdout, request, settings)))


def _shown(found: BranchReview) -> ShownBranch:
    return ShownBranch(
        draft=found.draft,
        branch=found.branch.encode("utf-8", "backslashreplace").decode(),
        tip=found.tip,
        count=found.count,
        commits=[
            ShownCommit(id=each.id, author=each.author, subject=each.subject)
            for each in found.commits
        ],
        files=[
            ShownFile(
                path=str(RelativePath.of(each.path)),
                added=each.added,
                removed=each.removed,
                notes=each.notes,
            )
            for each in found.files
        ],
        submodules=[str(RelativePath.of(os.fsencode(each))) for each in found.submodules],
        is_there=found.is_there,
    )


_NEXT = {
    PublishedChanged.code: "  holdfast draft merge PATH           merges it in the draft\n"
    "  holdfast draft show --project PATH  shows what the project has\n"
    '  holdfast ask --draft ID "..."       lets an agent correct it\n'
    "  holdfast publish --force PATH       takes the draft's of such a file\n"
    "  holdfast publish --only PATH        publishes others",
    DraftMerged.code: "  holdfast draft diff, then holdfast publish",
    DraftMovedOn.code: "  holdfast draft diff, then holdfast publish",
}
_REPOSITORY = RelativePath.of(".git")
_Hunks = dict[RelativePath, frozenset[int]]


def publish(request: Request, settings: Settings) -> Outcome:
    """Let the project have what a draft changed, or a part of it."""
    if request.value("--branch") is not None:
        return publish_branch(request, settings)
    commit = commit_order(request)
    with at_work(request, settings) as project:
        order = PublishOrder(
            draft=draft_meant(request, settings, project),
            only=_only(request, project),
            hunks=_hunks(request, project),
            force=project.paths(request.values("--force")),
            with_git=request.has("--git"),
            commit=commit,
            with_ignored=request.has("--ignored") or publishes_ignored(settings),
        )
        found = preview(project.workbench, order)
        if found.files and not request.has("--yes"):
            project.progress.clear()
            failure = _refused(found) or _unconfirmed(request, settings, project, found)
            if failure is not None:
                return _failed(request, failure)
        # Who says yes beforehand has reviewed nothing that a later write could make stale.
        seal = None if request.has("--yes") else found.seal
        sealed = replace(order, draft=found.draft.id, sealed=seal)
        try:
            made = published(project.workbench, sealed)
        except (PublishedChanged, DraftMerged, DraftMovedOn) as raised:
            return _failed(request, raised)
    require_commit(made)
    done = _done(made)
    if request.is_json:
        record = {**done_record(done), "uncovered": uncovered_record(found.uncovered)}
        return Outcome(answer=json_line(record))
    hint = "" if done.count else withheld_page(request, settings, found)
    if done.count and request.has("--yes"):  # it was published without being shown
        look = look_for(sys.stderr, request, settings)
        hint = unpublishable_page(found.uncovered, look).rstrip("\n")
    return Outcome(answer=done_page(done, look_for(sys.stdout, request, settings)), hint=hint)


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
            refuse(f"--hunk: {word} is not NUMBER:FILE, as in 2:src/main.c", request)
        found[path] = found.get(path, frozenset()) | {int(number)}
    return found


def _refused(found: Review) -> Failure | None:
    """The failure of a publication with conflicts; raised before asking for confirmation."""
    paths = [each.path for each in found.conflicts]
    return PublishedChanged(paths=tuple(map(str, paths))) if paths else None


def _unconfirmed(
    request: Request, settings: Settings, project: Project, found: Review
) -> Failure | None:
    """Ask, after showing all that would change; a failure unless the answer is yes."""
    look = look_for(sys.stderr, request, settings)
    files = shown(found.files)
    own = [each for each in files if each.path.within(_REPOSITORY)]
    page = repository_page(own, look) + stat_page(files, look)
    page += ignored_page(found.ignored, look) + conflicts_page((), found.merges, look)
    page += overwritten_page(found.overwrites, look)
    page += unpublishable_page(found.uncovered, look)
    prompt = ASK_COMMIT if request.has("--commit") else ASK
    if not request.is_json and confirmed(page, prompt):
        return None
    return PublishUnconfirmed(count=len(files), project=str(project.workbench.project))


def _failed(request: Request, failure: Failure) -> Outcome:
    if request.is_json:
        raise failure
    return Outcome(failure=failure, hint=_NEXT.get(failure.code, ""))


def _done(published: PublishResult) -> Done:
    return Done(
        deed="publish",
        key=published.key,
        undo=published.checkpoint,
        paths=published.paths,
        count=published.count,
        draft=published.draft,
        remaining=published.remaining,
        rescued=published.rescued,
        with_git=published.with_git,
        commit=published.commit,
        ignored=published.ignored,
    )
