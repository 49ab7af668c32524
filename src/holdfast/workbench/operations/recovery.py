"""Run transactions, record their outcome, and recover interrupted ones.

The facts of a transaction are in its marker, so that recovery after a crash records the same event
as the original process would have.

A draft created for its first batch exists only if the batch succeeds. The list of existing drafts
is written to `first-batch.json` before the draft is created, so that recovery can identify and
remove an orphan.
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

# Listed paths; the count is complete.
PATHS_MAX: Final = 1_000


class OperationKind(StrEnum):
    """What a transaction is for; stored in markers and events."""

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
    """What a transaction does, and what it establishes, for example a new base of a draft.

    `revised` is the draft checkpoint of the revision it leaves. An operation with a recorded key is
    not repeated; `is_new` says that the key was just created.
    """

    deed: OperationKind
    key: str
    draft: Id | None = None
    base: Id | None = None
    revised: Id | None = None
    is_new: bool = False
    facts: Facts = field(default_factory=dict[str, object])


class SettledTransaction(NamedTuple):
    """Outcome of a transaction, and the recorded facts."""

    outcome: TransactionOutcome
    facts: Facts


def transact(
    handle: WorkbenchHandle,
    site: TransactionSite,
    changes: tuple[PathChange, ...],
    intent: TransactionIntent,
) -> SettledTransaction:
    """Apply all changes or none, and record the outcome."""
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
    # Fail before the transaction rather than after it.
    encode_record(facts)
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
    """Record the outcome of a transaction, once; return the recorded facts.

    `is_new`: the key cannot have been recorded before.
    """
    if not outcome.facts:
        # An internal transaction without event.
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
    """Return the recorded facts of a finished operation; None if it was not done."""
    event = None if key is None else handle.records.outcome(_done(deed, key))
    return None if event is None else event.facts


def paths_in(facts: Facts, name: str) -> tuple[RelativePath, ...]:
    """Decode the paths of a fact."""
    listed = msgspec.convert(facts.get(name), tuple[str, ...])
    return tuple(map(RelativePath.from_text, listed))


def number_in(facts: Facts, name: str) -> int:
    """Decode the number of a fact."""
    number = facts.get(name)
    assert isinstance(number, int), f"{name} is not a number"
    return number


def _done(deed: OperationKind, key: str) -> str:
    """Event key of a finished operation."""
    return f"{deed} {key}"


def _ending(outcome: TransactionOutcome) -> Facts:
    return {
        "transaction": outcome.key,
        "conflicts": _listed(outcome.conflicts),
        "theirs": _listed(outcome.theirs),
        "rescued": _listed(outcome.rescued),
    }


def _rebase(handle: WorkbenchHandle, facts: Facts) -> None:
    """Set the new base of a draft and leave a revision.

    Idempotent: a repeated call after a crash leaves no second revision.
    """
    draft, base, seen = (facts.get(name) for name in ("draft", "base", "revised"))
    if draft is None or base is None:
        return
    try:
        found = handle.drafts.find(str(draft))
    except DraftMissing:  # discarded meanwhile
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
    """Create a draft for a batch; if the batch fails, it is removed."""
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
    with suppress(Failure):
        # The batch is done; the next opening repeats this cleanup.
        forget_first_batch(handle)


def forget_first_batch(handle: WorkbenchHandle) -> None:
    """Remove the draft of a failed first batch, unless it has a transaction to recover."""
    if not is_there(_path(handle)):
        return
    try:
        begun = msgspec.json.decode(_path(handle).read_bytes(), type=_Begun)
    except OSError as error:
        raise disk_failure(error, path=str(_path(handle))) from error
    except ValueError:
        # Torn write: no draft was created yet.
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
    """A recovered transaction: its site, and its result.

    `theirs` are paths left as another process changed them; overwritten versions are in the store
    (`rescued`). `commit` is the git commit it was to make.
    """

    what: str
    result: TransactionResult
    theirs: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    commit: Committed | None = None


def recover_all(handle: WorkbenchHandle) -> tuple[Recovered, ...]:
    """Recover the project and every draft with an interrupted transaction."""
    found: list[Recovered] = []
    # The project first: finishing a publish sets the base of its draft.
    with handle.project_site() as site:
        found += _reconciled(handle, site, _PROJECT)
    for draft in handle.drafts.all():
        if not handle.is_interrupted(draft):
            continue
        # A draft that cannot be recovered now fails when it is used.
        with suppress(Failure, OSError), open_view(handle.drafts, draft) as view:
            found += _reconciled(handle, handle.draft_site(draft, view), draft.id)
    forget_first_batch(handle)
    return tuple(found)


@contextmanager
def opened(handle: WorkbenchHandle, draft: Draft) -> Generator[DraftView]:
    """Open a draft after recovering it."""
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
    # Killed while staging: there is no marker, hence no key.
    handle.records.note("recovered", facts, key=f"{outcome.key} recovered" if outcome.key else None)
    return [found]
