"""Apply a batch of file changes to a draft, atomically and at most once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import above_of
from holdfast.workbench.diff.tree_changes import known_entry
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import BatchStale, RevisionUnwritten
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import Checkpoint, Draft, EntryKind, PathChange, PathEntry, Revision
from holdfast.workbench.objects.formats import name_of, split_content
from holdfast.workbench.operations.batch_plan import (
    BatchRetry,
    BatchStep,
    Chmod,
    Create,
    DeletePath,
    Rename,
    Update,
    changes_of,
    check_retry,
)
from holdfast.workbench.operations.draft_state import DraftState, draft_state
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import (
    OperationKind,
    TransactionIntent,
    facts_of,
    first_batch,
    number_in,
    opened,
    transact,
)
from holdfast.workbench.operations.reports import redacted_wire
from holdfast.workbench.operations.revisions import FOUND, next_number, revised
from holdfast.workbench.records import BatchAttempt
from holdfast.workbench.store.tree_queries import entries_below, store_contents
from holdfast.workbench.transaction.machine import Facts, TransactionResult
from holdfast.world.failures import DiskFull, DiskQuota

Answer = TypeVar("Answer")


def after_change(
    draft: Draft, work: Callable[[], Answer], *, release_reserve: Callable[[], None]
) -> Answer:
    """Run `work`, again after `release_reserve` on a full disk; else RevisionUnwritten."""
    try:
        try:
            return work()
        except (DiskFull, DiskQuota):
            release_reserve()
            return work()
    except (Failure, OSError) as failure:
        raise RevisionUnwritten(draft=draft.id, reason=str(failure)) from failure


BEGUN, APPLIED, FAILED = "begun", "applied", "failed"
"""Result of an attempt; one that stayed `begun` was killed."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """Create a file; missing parent directories are created."""

    path: RelativePath
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class NewDirectory:
    path: RelativePath
    mode: int = 0o755


@dataclass(frozen=True, slots=True)
class NewLink:
    path: RelativePath
    target: bytes


@dataclass(frozen=True, slots=True)
class NewContent:
    """Replace the content of a file; with `expected`, only if it has that content."""

    path: RelativePath
    data: bytes
    expected: bytes | None = None


FileStep = NewFile | NewDirectory | NewLink | NewContent | DeletePath | Rename | Chmod
"""One change of a batch; a later one finds what an earlier one made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The changed draft, and its new revision."""

    draft: Draft
    revision: Revision


def apply(
    workbench: Workbench, draft: str | None, steps: Sequence[FileStep], key: str | None = None
) -> Applied:
    """Make all changes of a batch in a draft, or none; without a draft, create one.

    A batch with the same key is applied once; a failed one is checked again, and raises BatchStale
    if the draft has changed. Raises BatchRefused with all reasons if it does not fit.
    """
    with workbench.locked() as (handle, _):
        done = facts_of(handle, OperationKind.BATCH, key)
        if done is not None:
            return _applied(handle, done)
        key = key or handle.ids.make("batch")
        if draft is not None:
            return _tried(handle, handle.drafts.find(draft), steps, key)
        with first_batch(handle, key) as made:
            return _tried(handle, made, steps, key)


def _tried(handle: WorkbenchHandle, draft: Draft, steps: Sequence[FileStep], key: str) -> Applied:
    with opened(handle, draft) as view:
        state = draft_state(handle, view, draft)
        state = replace(state, draft=revised(handle, state, FOUND))
        attempt = BatchAttempt(
            at=handle.records.now(),
            batch=key,
            draft=draft.id,
            outcome=BEGUN,
            paths=tuple(str(step.path) for step in steps),
            before=state.ours.id,
        )
        try:
            changes = _stamped(handle, _planned(handle, state.ours, steps, key))
            handle.records.attempt(attempt)
            applied = _made(handle, view, state, changes, key)
        except Failure as failure:
            with suppress(Failure):
                # Must not mask the failure.
                failed = msgspec.structs.replace(attempt, outcome=FAILED, failure=failure.code)
                handle.records.attempt(failed)
                facts = {"draft": draft.id, "batch": key, "error": redacted_wire(failure)}
                handle.records.note("apply_failed", facts)
            raise
    after = applied.revision.checkpoint
    with suppress(Failure):
        # The batch is applied; its begin is recorded.
        handle.records.attempt(msgspec.structs.replace(attempt, outcome=APPLIED, after=after))
    return applied


def _made(
    handle: WorkbenchHandle,
    view: DraftView,
    state: DraftState,
    changes: tuple[PathChange, ...],
    key: str,
) -> Applied:
    draft = state.draft
    intent = TransactionIntent(
        deed=OperationKind.BATCH,
        key=key,
        draft=draft.id,
        facts={"revision": next_number(draft)},
    )
    outcome, facts = transact(handle, handle.draft_site(draft, view), changes, intent)
    if outcome.result is not TransactionResult.FINISHED:
        raise BatchStale(paths=tuple(map(str, outcome.conflicts)))
    return after_change(
        draft,
        lambda: _revised(handle, view, facts, state.theirs),
        release_reserve=handle.store.object_store.reserve.release,
    )


def _applied(handle: WorkbenchHandle, facts: Facts) -> Applied:
    """Result of a batch that is already done; its revision may be missing after a crash."""
    draft = handle.drafts.find(str(facts["draft"]))
    number = number_in(facts, "revision")
    revision = next((each for each in draft.revisions if each.number == number), None)
    if revision is not None:
        return Applied(draft=draft, revision=revision)
    with opened(handle, draft) as view:
        return _revised(handle, view, facts)


def _revised(
    handle: WorkbenchHandle, view: DraftView, facts: Facts, theirs: Checkpoint | None = None
) -> Applied:
    state = draft_state(handle, view, handle.drafts.find(str(facts["draft"])), theirs)
    draft = revised(handle, state, f"batch {facts['key']}", is_due=True)
    return Applied(draft=draft, revision=draft.revisions[-1])


def _planned(
    handle: WorkbenchHandle, ours: Checkpoint, steps: Sequence[FileStep], key: str
) -> tuple[PathChange, ...]:
    """Changes of the batch; a repeated one is planned on the draft of its first attempt."""
    spelled = _spelled(handle, steps)
    tries = [each for each in handle.records.attempts() if each.batch == key]
    begun = next((each.before for each in tries if each.outcome == BEGUN), None)
    if begun is None:
        return changes_of(spelled, _reached(handle, ours, spelled))
    changes = changes_of(spelled, _reached(handle, handle.store.find(begun), spelled))
    now = {change.path: known_entry(handle.store.node(ours, change.path)) for change in changes}
    there = {path: entry for path, entry in now.items() if entry is not None}
    return changes if check_retry(changes, there) is BatchRetry.APPLY else ()


def _stamped(handle: WorkbenchHandle, changes: tuple[PathChange, ...]) -> tuple[PathChange, ...]:
    """Set the mtime of written files to now: build tools compare it."""
    now_ns = int(handle.context.ports.clock.now() * 1e9)
    return tuple(
        PathChange(each.path, each.before, msgspec.structs.replace(each.after, mtime_ns=now_ns))
        if each.after is not None and _is_written(each.before, each.after)
        else each
        for each in changes
    )


def _is_written(before: PathEntry | None, after: PathEntry) -> bool:
    if before is None or after.mtime_ns == 0:
        # A renamed file keeps its mtime.
        return after.mtime_ns == 0
    return before.content != after.content


def _spelled(handle: WorkbenchHandle, steps: Sequence[FileStep]) -> list[BatchStep]:
    """Steps with contents replaced by their hashes in the store."""
    data = [step.data for step in steps if isinstance(step, NewFile | NewContent)]
    kept = iter(store_contents(handle.store, data))
    return [_step(step, kept) for step in steps]


def _step(step: FileStep, kept: Iterator[tuple[bytes, int]]) -> BatchStep:
    match step:
        case NewFile(path, _, mode):
            content, size = next(kept)
            return Create(path, PathEntry(EntryKind.FILE, mode, content=content, size=size))
        case NewDirectory(path, mode):
            return Create(path, PathEntry(EntryKind.DIRECTORY, mode))
        case NewLink(path, target):
            return Create(path, PathEntry(EntryKind.LINK, 0o777, target=target))
        case NewContent(path, _, expected):
            content, size = next(kept)
            known = None if expected is None else split_content([expected], name_of)[0]
            return Update(path, content, size, known)
        case _:
            return step


def _reached(
    handle: WorkbenchHandle, ours: Checkpoint, steps: Sequence[BatchStep]
) -> dict[RelativePath, PathEntry]:
    """Entries of the draft that the steps can affect."""
    found: dict[RelativePath, PathEntry] = {}
    named = {path for step in steps for path in _paths(step)}
    above = {each for path in named for each in above_of(path)}
    for path in named | above:
        entry = known_entry(handle.store.node(ours, path))
        if entry is not None:
            found[path] = entry
    for step in steps:
        if isinstance(step, DeletePath | Rename):
            found |= entries_below(handle.store, ours, step.path)
    return found


def _paths(step: BatchStep) -> Iterator[RelativePath]:
    yield step.path
    if isinstance(step, Rename):
        yield step.target
