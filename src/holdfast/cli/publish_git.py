"""What of a publication goes into a git repository: a commit of it, or the draft's commits."""

from __future__ import annotations

import os
import sys
from typing import Final

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.confirming import confirmed
from holdfast.cli.core.branch_page import (
    ASK_BRANCH,
    ShownBranch,
    ShownCommit,
    ShownFile,
    branch_page,
    branch_record,
    branch_taken_page,
)
from holdfast.cli.draft_choose import draft_meant
from holdfast.cli.failures import BranchUnconfirmed
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.cli.workbench_project import at_work, refuse
from holdfast.nouns import RelativePath
from holdfast.workbench import BranchReview, CommitOrder, Published, review_branch, take_branch
from holdfast.workbench.failures import GitCommitNotMade

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


def require_commit(published: Published) -> None:
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
