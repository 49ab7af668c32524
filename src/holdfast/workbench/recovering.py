"""Finish or undo what was interrupted, before anything else is done, and say which."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.core.publication import Way
from holdfast.workbench.first_batch import forget_first_batch
from holdfast.workbench.git_commit import committed_in
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Committed, Draft
from holdfast.workbench.settling import settle
from holdfast.workbench.site import Site
from holdfast.workbench.transaction import recover
from holdfast.workbench.views import View, open_view

_PROJECT: Final = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """One transaction that somebody else began: on what, and which way it went now.

    `theirs` was changed by somebody else meanwhile and left so; what of it was overwritten is
    `rescued` in the store. `commit` is the commit that it was to make.
    """

    what: str
    way: Way
    theirs: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    commit: Committed | None = None


def recover_all(held: Held) -> tuple[Recovered, ...]:
    """Reconcile the project and every draft in which something was interrupted."""
    found: list[Recovered] = []
    with held.project_site() as site:
        found += _reconciled(held, site, _PROJECT)
    for draft in held.drafts.all():
        if not held.is_interrupted(draft):
            continue
        # If it cannot be done now, whoever uses this draft is told.
        with suppress(Failure, OSError), open_view(held.drafts, draft) as view:
            found += _reconciled(held, held.draft_site(draft, view), draft.id)
    forget_first_batch(held)
    return tuple(found)


@contextmanager
def opened(held: Held, draft: Draft) -> Generator[View]:
    """Open a draft in which nothing is half done."""
    with open_view(held.drafts, draft) as view:
        _reconciled(held, held.draft_site(draft, view), draft.id)
        yield view


def _reconciled(held: Held, site: Site, what: str) -> list[Recovered]:
    noted: dict[str, object] = {}
    outcome = recover(
        site,
        held.store,
        tell=lambda outcome: noted.update(settle(held, outcome)),
        news=held.bench.news,
    )
    if outcome is None:
        return []
    found = Recovered(
        what=what,
        way=outcome.way,
        theirs=outcome.theirs,
        rescued=outcome.rescued,
        commit=committed_in(noted) if outcome.way is Way.FINISHED else None,
    )
    facts = {"what": what, "way": found.way, "transaction": outcome.key}
    # What was killed while staging left no marker, and so no key to note it under once.
    held.records.note("recovered", facts, key=f"{outcome.key} recovered" if outcome.key else None)
    return [found]
