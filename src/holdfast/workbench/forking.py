"""Make a draft that has the changes of another one, and goes its own way from there."""

from __future__ import annotations

from dataclasses import replace

from holdfast.workbench.drafting import revise
from holdfast.workbench.going_back import undo
from holdfast.workbench.model import Draft
from holdfast.workbench.workbench import Workbench


def fork_draft(workbench: Workbench, draft: str) -> Draft:
    """A new draft with the changes that this one has now; the two share nothing from then on.

    Its first revision is the last one of the other, which it goes to: so what the person changed
    in the project meanwhile is treated as it is whenever one goes back.
    """
    revise(workbench, draft, "fork")
    with workbench.held() as (held, _):
        found = held.drafts.find(draft)
        made = held.drafts.make(found.mode, news=held.bench.news)
        facts = {"draft": made.id, "mode": made.mode, "reason": made.reason, "of": found.id}
        held.records.note("draft_opened", facts, key=f"open {made.id}")
        if not found.revisions:
            return made
        last = found.revisions[-1]
        last = replace(last, base=last.base or found.base, back_to=None)
        held.drafts.save(replace(made, revisions=(last,)))
    undo(workbench, made.id, to=last.number)
    return made
