"""Finish or undo what was interrupted, before anything else is done, and say which.

Carry a transaction out and write down how it ended, also if somebody else must end it.

What a transaction is for stands in its marker. So whoever finishes or undoes it after a crash says
the same about it as we would have.

A draft that is made for its first batch: it stays if the batch does.

What is to come is written down before the draft is made. So whoever opens the workbench after a
kill knows which draft nobody has asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from holdfast.failures import Failure
from holdfast.nouns import Id, RelativePath
from holdfast.workbench.draft.view import DraftView, open_view
from holdfast.workbench.failures import DraftMissing
from holdfast.workbench.handle import WorkbenchHandle, joined_path
from holdfast.workbench.model import Committed, Draft, PathChange
from holdfast.workbench.operations.git_commit import committed_in, finish_commit
from holdfast.workbench.operations.revisions import with_revision
from holdfast.workbench.transaction.machine import (
    Facts,
    Purpose,
    TransactionOutcome,
    TransactionResult,
)
from holdfast.workbench.transaction.site import TransactionSite, is_there
from holdfast.workbench.transaction.transaction import execute, recover
from holdfast.world import disk_failure, encode_record, remove_leftovers, replace_file

PATHS_MAX: Final = 1_000  # more of them nobody reads; all are counted


class OperationKind(StrEnum):
    """What a transaction is for."""

    PUBLISH = "publish"
    RESTORE = "restore"
    BATCH = "batch"
    UNDO = "undo"
    MERGE = "merge"


_DONE: Final = {
    OperationKind.PUBLISH: "published",
    OperationKind.RESTORE: "restored",
    OperationKind.BATCH: "batch_applied",
    OperationKind.UNDO: "draft_went_back",
    OperationKind.MERGE: "draft_merged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionIntent:
    """What is to be done, and what is true once it is: the new base of a draft, among others.

    `revised` is the checkpoint of a draft of which it leaves a revision. Said again with the same
    key, it is not done again; one that `is_new` was just made up here.
    """

    deed: OperationKind
    key: str
    draft: Id | None = None
    base: Id | None = None
    revised: Id | None = None
    is_new: bool = False
    facts: Facts = field(default_factory=dict[str, object])


class SettledTransaction(NamedTuple):
    """How a transaction ended, and what is written down about it."""

    outcome: TransactionOutcome
    facts: Facts


def transact(
    handle: WorkbenchHandle,
    site: TransactionSite,
    changes: tuple[PathChange, ...],
    intent: TransactionIntent,
) -> SettledTransaction:
    """Make all the changes or none, and write down which."""
    name = handle.ids.make("tx")
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

    def record_outcome(outcome: TransactionOutcome) -> None:
        is_ours = outcome.key == name
        settled = settle(handle, outcome, is_new=intent.is_new and is_ours)
        if is_ours:
            noted.update(settled)

    outcome = execute(
        site,
        handle.store,
        changes,
        purpose=Purpose(name, facts),
        record_outcome=record_outcome,
        on_progress=handle.context.on_progress,
    )
    return SettledTransaction(outcome, {**facts, **noted, **_ending(outcome)})


def settle(handle: WorkbenchHandle, outcome: TransactionOutcome, *, is_new: bool = False) -> Facts:
    """Write down how a transaction ended; said twice, it is there once. Returns what is there.

    One that `is_new` has a key that nobody can have noted before this hold.
    """
    if not outcome.facts:  # one that nobody needs to know of
        return {}
    deed = OperationKind(str(outcome.facts["deed"]))
    facts = {**outcome.facts, **_ending(outcome)}
    if outcome.result is TransactionResult.FINISHED:
        key = _done(deed, str(facts["key"]))
        known = None if is_new else handle.records.outcome(key)
        if known is not None:
            return known.facts
        _rebase(handle, facts)
        commit = facts.get("commit")
        if commit is not None:
            prepared = msgspec.convert(commit, dict[str, object])
            facts["commit"] = dict(finish_commit(handle, prepared))
        handle.records.note(_DONE[deed], facts, key=key, is_new=is_new)
    else:
        handle.records.note(f"{deed}_undone", facts, key=f"{outcome.key} undone")
    return facts


def facts_of(handle: WorkbenchHandle, deed: OperationKind, key: str | None) -> Facts | None:
    """What was written down of a deed that is done already; None if it is not."""
    event = None if key is None else handle.records.outcome(_done(deed, key))
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


def _done(deed: OperationKind, key: str) -> str:
    """By what it is known that a deed was done."""
    return f"{deed} {key}"


def _ending(outcome: TransactionOutcome) -> Facts:
    return {
        "transaction": outcome.key,
        "conflicts": _listed(outcome.conflicts),
        "theirs": _listed(outcome.theirs),
        "rescued": _listed(outcome.rescued),
    }


def _rebase(handle: WorkbenchHandle, facts: Facts) -> None:
    """Count the changes of a draft from now on from what is there now, and leave a revision.

    Whoever did so and died then did not say that it is done: there is one revision all the same.
    """
    draft, base, seen = (facts.get(name) for name in ("draft", "base", "revised"))
    if draft is None or base is None:
        return
    try:
        found = handle.drafts.find(str(draft))
    except DraftMissing:  # it was discarded meanwhile
        return
    now = replace(found, base=Id(str(base)))
    cause = _DONE[OperationKind(str(facts["deed"]))]
    last = now.revisions[-1] if now.revisions else None
    if seen is not None and (last is None or (last.checkpoint, last.base) != (seen, base)):
        now = with_revision(handle, now, Id(str(seen)), cause)
    handle.drafts.save(now)


def _listed(paths: Iterable[RelativePath]) -> list[str]:
    return [str(path) for path in tuple(paths)[:PATHS_MAX]]


_RECORD: Final = "first-batch.json"


class _Begun(msgspec.Struct, frozen=True):
    key: str
    drafts: tuple[str, ...]


@contextmanager
def first_batch(handle: WorkbenchHandle, key: str) -> Generator[Draft]:
    """Make a draft for a batch; if the batch fails, it is removed again."""
    drafts = handle.drafts
    known = (*(draft.id for draft in drafts.all()), *(each.draft for each in drafts.damaged()))
    begun = msgspec.json.encode(_Begun(key, known))
    remove_leftovers(handle.context.ports.disk, _path(handle))
    replace_file(handle.context.ports.disk, _path(handle), (begun,))
    try:
        yield handle.drafts.make(on_progress=handle.context.on_progress)
    except Failure:
        forget_first_batch(handle)
        raise
    with suppress(Failure):  # it is done: whoever opens the workbench next forgets it, too
        forget_first_batch(handle)


def forget_first_batch(handle: WorkbenchHandle) -> None:
    """Remove the draft of a first batch that came to nothing; then nothing is to come any more.

    As long as something in it is to be finished or undone, nobody knows that yet.
    """
    if not is_there(_path(handle)):
        return
    try:
        begun = msgspec.json.decode(_path(handle).read_bytes(), type=_Begun)
    except OSError as error:
        raise disk_failure(error, path=str(_path(handle))) from error
    except ValueError:  # it was cut short, so no draft was made yet
        begun = None
    if begun is not None and facts_of(handle, OperationKind.BATCH, begun.key) is None:
        for draft in handle.drafts.all():
            if draft.id not in begun.drafts and not draft.revisions:
                if handle.is_interrupted(draft):
                    return
                handle.drafts.remove(draft)
    handle.context.ports.disk.unlink(_path(handle))


def _path(handle: WorkbenchHandle) -> Path:
    return joined_path(handle.context.directory, _RECORD)


_PROJECT: Final = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """One transaction that somebody else began: on what, and which way it went now.

    `theirs` was changed by somebody else meanwhile and left so; what of it was overwritten is
    `rescued` in the store. `commit` is the commit that it was to make.
    """

    what: str
    result: TransactionResult
    theirs: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    commit: Committed | None = None


def recover_all(handle: WorkbenchHandle) -> tuple[Recovered, ...]:
    """Reconcile the project and every draft in which something was interrupted."""
    found: list[Recovered] = []
    with handle.project_site() as site:
        found += _reconciled(handle, site, _PROJECT)
    for draft in handle.drafts.all():
        if not handle.is_interrupted(draft):
            continue
        # If it cannot be done now, whoever uses this draft is told.
        with suppress(Failure, OSError), open_view(handle.drafts, draft) as view:
            found += _reconciled(handle, handle.draft_site(draft, view), draft.id)
    forget_first_batch(handle)
    return tuple(found)


@contextmanager
def opened(handle: WorkbenchHandle, draft: Draft) -> Generator[DraftView]:
    """Open a draft in which nothing is half done."""
    with open_view(handle.drafts, draft) as view:
        _reconciled(handle, handle.draft_site(draft, view), draft.id)
        yield view


def _reconciled(handle: WorkbenchHandle, site: TransactionSite, what: str) -> list[Recovered]:
    noted: dict[str, object] = {}
    outcome = recover(
        site,
        handle.store,
        record_outcome=lambda outcome: noted.update(settle(handle, outcome)),
        on_progress=handle.context.on_progress,
    )
    if outcome is None:
        return []
    found = Recovered(
        what=what,
        result=outcome.result,
        theirs=outcome.theirs,
        rescued=outcome.rescued,
        commit=committed_in(noted) if outcome.result is TransactionResult.FINISHED else None,
    )
    facts = {"what": what, "way": found.result, "transaction": outcome.key}
    # What was killed while staging left no marker, and so no key to note it under once.
    handle.records.note("recovered", facts, key=f"{outcome.key} recovered" if outcome.key else None)
    return [found]
