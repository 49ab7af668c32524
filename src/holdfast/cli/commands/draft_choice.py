"""Let a person choose the draft that a command is about, where several have changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import anyio

from holdfast.app.config import publishes_ignored
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.output import look_for
from holdfast.cli.project import Project
from holdfast.cli.render.drafts import drafts_page
from holdfast.cli.terminal import Terminal
from holdfast.nouns import printable
from holdfast.workbench import default_drafts
from holdfast.workbench.failures import DraftAmbiguous
from holdfast.workbench.model import Draft


def draft_meant(
    request: Request, settings: Settings, project: Project, *, any_change: bool = False
) -> str | None:
    """The id that a request names, or of the only draft with changes; None if there is none.

    If several have changes the user is asked. Raises DraftAmbiguous without a terminal. Drafts
    with nothing but changes that are published only on request (ignored files, `.git`) are left
    out if another one has more, unless the request is about those or `any_change` counts.
    """
    named = request.value("--draft")
    if named is not None:
        return named
    is_branch = request.value("--branch") is not None
    found = default_drafts(
        project.workbench,
        with_git=any_change or is_branch or request.has("--git"),
        with_ignored=any_change or request.has("--ignored") or publishes_ignored(settings),
    )[::-1]
    if len(found) < 2:
        return found[0].id if found else None
    project.progress.clear()
    page = drafts_page(found, look_for(sys.stderr, request, settings), now=time.time())
    chosen = None if request.is_json else anyio.run(_asked, page, found)
    if chosen is None:
        where = str(project.workbench.project)
        raise DraftAmbiguous(drafts=tuple(each.id for each in found), project=where)
    return chosen.id


async def _asked(page: str, found: Sequence[Draft]) -> Draft | None:
    terminal = Terminal()
    if not terminal.can_ask:
        return None

    def meant(line: str) -> Draft | None:
        word = line.strip()
        if not word:
            return found[0]
        named = [each for each in found if word in each.id]
        return named[0] if len(named) == 1 else None

    newest = printable(found[0].id)
    prompt = f"Which draft? Its id, or Enter for the newest ({newest}): "
    return await terminal.ask(page, prompt, meant, again="Not one of these: ")
