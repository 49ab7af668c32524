"""Carry a transaction out and write down how it ended, also if somebody else must end it.

What a transaction is for stands in its marker. So whoever finishes or undoes it after a crash says
the same about it as we would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from holdfast.nouns import Id, RelativePath
from holdfast.workbench.core.publication import Facts, Outcome, Purpose, Way
from holdfast.workbench.failures import DraftMissing
from holdfast.workbench.git_commit import finish_commit
from holdfast.workbench.holding import Held
from holdfast.workbench.model import Change
from holdfast.workbench.revising import with_revision
from holdfast.workbench.site import Site
from holdfast.workbench.transaction import carry_out
from holdfast.world import encode_record

PATHS_MAX: Final = 1_000  # more of them nobody reads; all are counted


class Deed(StrEnum):
    """What a transaction is for."""

    PUBLISH = "publish"
    RESTORE = "restore"
    BATCH = "batch"
    UNDO = "undo"
    MERGE = "merge"


_DONE: Final = {
    Deed.PUBLISH: "published",
    Deed.RESTORE: "restored",
    Deed.BATCH: "batch_applied",
    Deed.UNDO: "draft_went_back",
    Deed.MERGE: "draft_merged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is to be done, and what is true once it is: the new base of a draft, among others.

    `revised` is the checkpoint of a draft of which it leaves a revision. Said again with the same
    key, it is not done again; one that `is_new` was just made up here.
    """

    deed: Deed
    key: str
    draft: Id | None = None
    base: Id | None = None
    revised: Id | None = None
    is_new: bool = False
    facts: Facts = field(default_factory=dict[str, object])


class Settled(NamedTuple):
    """How a transaction ended, and what is written down about it."""

    outcome: Outcome
    facts: Facts


def transact(held: Held, site: Site, changes: tuple[Change, ...], intent: Intent) -> Settled:
    """Make all the changes or none, and write down which."""
    name = held.ids.make("tx")
    known = {"draft": intent.draft, "base": intent.base, "revised": intent.revised}
    facts = {
        **intent.facts,
        "deed": intent.deed,
        "key": intent.key,
        **{name: id for name, id in known.items() if id is not None},
        "paths": _listed(change.path for change in changes),
        "count": len(changes),
    }
    encode_record(facts)  # what cannot be written down in the end is refused before it begins
    noted: dict[str, object] = {}

    def tell(outcome: Outcome) -> None:
        is_ours = outcome.key == name
        settled = settle(held, outcome, is_new=intent.is_new and is_ours)
        if is_ours:
            noted.update(settled)

    outcome = carry_out(
        site,
        held.store,
        changes,
        purpose=Purpose(name, facts),
        tell=tell,
        news=held.bench.news,
    )
    return Settled(outcome, {**facts, **noted, **_ending(outcome)})


def settle(held: Held, outcome: Outcome, *, is_new: bool = False) -> Facts:
    """Write down how a transaction ended; said twice, it is there once. Returns what is there.

    One that `is_new` has a key that nobody can have noted before this hold.
    """
    if not outcome.facts:  # one that nobody needs to know of
        return {}
    deed = Deed(str(outcome.facts["deed"]))
    facts = {**outcome.facts, **_ending(outcome)}
    if outcome.way is Way.FINISHED:
        key = _done(deed, str(facts["key"]))
        known = None if is_new else held.records.outcome(key)
        if known is not None:
            return known.facts
        _rebase(held, facts)
        commit = facts.get("commit")
        if commit is not None:
            prepared = msgspec.convert(commit, dict[str, object])
            facts["commit"] = dict(finish_commit(held, prepared))
        held.records.note(_DONE[deed], facts, key=key, is_new=is_new)
    else:
        held.records.note(f"{deed}_undone", facts, key=f"{outcome.key} undone")
    return facts


def facts_of(held: Held, deed: Deed, key: str | None) -> Facts | None:
    """What was written down of a deed that is done already; None if it is not."""
    event = None if key is None else held.records.outcome(_done(deed, key))
    return None if event is None else event.facts


def paths_in(facts: Facts, name: str) -> tuple[RelativePath, ...]:
    """The paths that are written down under a name."""
    listed = msgspec.convert(facts.get(name), tuple[str, ...])
    return tuple(map(RelativePath.from_text, listed))


def number_in(facts: Facts, name: str) -> int:
    """The number that is written down under a name."""
    number = facts.get(name)
    assert isinstance(number, int), f"{name} is no number"
    return number


def _done(deed: Deed, key: str) -> str:
    """By what it is known that a deed was done."""
    return f"{deed} {key}"


def _ending(outcome: Outcome) -> Facts:
    return {
        "transaction": outcome.key,
        "conflicts": _listed(outcome.conflicts),
        "theirs": _listed(outcome.theirs),
        "rescued": _listed(outcome.rescued),
    }


def _rebase(held: Held, facts: Facts) -> None:
    """Count the changes of a draft from now on from what is there now, and leave a revision.

    Whoever did so and died then did not say that it is done: there is one revision all the same.
    """
    draft, base, seen = (facts.get(name) for name in ("draft", "base", "revised"))
    if draft is None or base is None:
        return
    try:
        found = held.drafts.find(str(draft))
    except DraftMissing:  # it was discarded meanwhile
        return
    now = replace(found, base=Id(str(base)))
    cause = _DONE[Deed(str(facts["deed"]))]
    last = now.revisions[-1] if now.revisions else None
    if seen is not None and (last is None or (last.checkpoint, last.base) != (seen, base)):
        now = with_revision(held, now, Id(str(seen)), cause)
    held.drafts.save(now)


def _listed(paths: Iterable[RelativePath]) -> list[str]:
    return [str(path) for path in tuple(paths)[:PATHS_MAX]]
