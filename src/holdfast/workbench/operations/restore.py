"""Restore a project to a checkpoint, reversibly.

Only differing paths are changed. Paths that either side does not cover stay, with their
directories; if a covered entry would have to replace one, nothing is restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import (
    ConflictReason,
    PathDecision,
    above_of,
    changes_of,
    chosen_of,
    decide_all,
    is_own_repository,
    require_agreement,
    seal_of,
)
from holdfast.workbench.diff.tree_changes import differing
from holdfast.workbench.failures import CheckpointMissing, RestoreConflict, RestoreStale
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import Checkpoint, EntryKind, Occasion, PathChange, PathEntry
from holdfast.workbench.operations.change_view import FileDiff, file_diffs
from holdfast.workbench.operations.checkpoints import checkpoint_before, prune_after_operation
from holdfast.workbench.operations.draft_state import uncovered_in
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import (
    OperationKind,
    TransactionIntent,
    facts_of,
    number_in,
    paths_in,
    transact,
)
from holdfast.workbench.operations.reports import report_done, report_failed
from holdfast.workbench.store.tree_queries import find_checkpoint, uncovered_entries
from holdfast.workbench.transaction.machine import Facts, TransactionResult


def without_removals(
    changes: Sequence[PathChange],
) -> tuple[tuple[PathChange, ...], list[RelativePath]]:
    """Return the changes that remove nothing, and the paths that stay because of that.

    A directory with new entries stays one, even if the checkpoint has a file there.
    """
    new = {change.path for change in changes if change.after is None}
    above = {each for path in new for each in above_of(path)}
    left = new | {
        change.path
        for change in changes
        if change.path in above and not (change.after is not None and change.after.is_directory)
    }
    return tuple(change for change in changes if change.path not in left), sorted(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOrder:
    """What is to be restored: a checkpoint, or only these paths of it, with all below them.

    The project's own repository is left alone unless it is asked for. With `keep_new`, what was
    made since the checkpoint stays. `sealed` is the seal of a preview. With the same `key`, it is
    done once.
    """

    checkpoint: str
    only: tuple[RelativePath, ...] | None = None
    with_git: bool = False
    keep_new: bool = False
    sealed: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePreview:
    """What a restore would do to the project: every path, as it is now and as it would be.

    `left` is what it does not touch: what is not covered, or is kept because it is new.
    """

    checkpoint: str
    files: tuple[FileDiff, ...]
    left: tuple[RelativePath, ...]
    seal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored: how many paths, and the first of them.

    `before` is the project as it was, so that restoring it takes all of this back; without one
    there was nothing to restore. `removed` of the paths were made since and are gone. `left` is
    what was not touched: what is not covered, or is kept because it is new. `with_git`: some of it
    is in the project's own repository, and restoring `before` must ask for that.
    """

    key: str
    checkpoint: str
    before: str | None
    paths: tuple[RelativePath, ...]
    count: int
    left: tuple[RelativePath, ...] = ()
    rescued: tuple[RelativePath, ...] = ()
    with_git: bool = False
    removed: int = 0


def preview_restore(workbench: Workbench, order: RestoreOrder) -> RestorePreview:
    """What a restore would do; the project is not touched."""
    with workbench.locked() as (handle, _):
        target = find_checkpoint(handle.store, order.checkpoint)
        changes, left = _decided(handle, handle.look(), target, order)
        return RestorePreview(
            checkpoint=target.id,
            files=file_diffs(handle.store, changes),
            left=left,
            seal=seal_of(changes),
        )


def restore(workbench: Workbench, order: RestoreOrder) -> Restored:
    """Restore the selected paths to a checkpoint, all or none.

    Raises FileReadFailed if an uncovered path would be lost, RestoreConflict for a concurrent
    change.
    """
    with workbench.locked() as (handle, _):
        done = facts_of(handle, OperationKind.RESTORE, order.key)
        if done is not None:
            return _restored(done)
        try:
            return _restore(handle, order)
        except CheckpointMissing:
            raise
        except Failure as failure:
            report_failed(handle, OperationKind.RESTORE, failure, checkpoint=order.checkpoint)
            raise


def _restore(handle: WorkbenchHandle, order: RestoreOrder) -> Restored:
    # Scan and checkpoint in one transaction: what is replaced is exactly what was recorded.
    target, changes, left, before = handle.store.transaction(lambda: _planned(handle, order))
    if before is None:
        return Restored(
            key=order.key or "", checkpoint=target.id, before=None, paths=(), count=0, left=left
        )
    intent = TransactionIntent(
        deed=OperationKind.RESTORE,
        key=order.key or handle.ids.make("restore"),
        is_new=order.key is None,
        facts={
            "checkpoint": target.id,
            "before": before.id,
            "left": [str(path) for path in left],
            "removed": sum(each.after is None for each in changes),
            "git": any(is_own_repository(each.path) for each in changes),
        },
    )
    with handle.project_site() as site:
        outcome, facts = transact(handle, site, changes, intent)
    if outcome.result is not TransactionResult.FINISHED:
        raise RestoreConflict(paths=tuple(map(str, outcome.conflicts)))
    report_done(handle, OperationKind.RESTORE, facts, changes, undo=before)
    prune_after_operation(handle)
    return _restored(facts)


class _Plan(NamedTuple):
    """Target, changes, uncovered paths that stay, and the checkpoint before."""

    target: Checkpoint
    changes: tuple[PathChange, ...]
    left: tuple[RelativePath, ...]
    before: Checkpoint | None


def _planned(handle: WorkbenchHandle, order: RestoreOrder) -> _Plan:
    """Scan the project and plan; if anything changes, record a checkpoint of it."""
    target = find_checkpoint(handle.store, order.checkpoint)
    now = handle.seen()
    changes, left = _decided(handle, now, target, order)
    if order.sealed is not None and order.sealed != seal_of(changes):
        raise RestoreStale(checkpoint=target.id)
    before = f"before restoring {target.id}"
    kept = checkpoint_before(handle, now, Occasion.PRE_RESTORE, before) if changes else None
    return _Plan(target, changes, left, kept)


class _Decided(NamedTuple):
    """Changes of a restore, and differing paths that it leaves."""

    changes: tuple[PathChange, ...]
    left: tuple[RelativePath, ...]


def _decided(
    handle: WorkbenchHandle, now: Checkpoint, target: Checkpoint, order: RestoreOrder
) -> _Decided:
    uncovered = uncovered_in(handle, now)
    hidden = uncovered_entries(handle.store, now, now, target)
    only = None if order.only is None else frozenset(order.only)
    store = handle.store
    found = store.changes(now, target) if only is None else store.changes_near(now, target, only)
    trees = differing((), found, hidden)
    decided = decide_all(*trees, uncovered=uncovered, publishes_repository=order.with_git)
    decided = chosen_of(decided, trees.ours, only)
    left = [path for path, found in decided.items() if _is_left(found, trees.ours.get(path))]
    decided = {path: found for path, found in decided.items() if path not in {*left}}
    require_agreement(decided)
    changes = changes_of(decided, trees.theirs, trees.ours)
    if order.keep_new:
        changes, kept = without_removals(changes)
        left += kept
    return _Decided(changes, tuple(sorted(left)))


def _is_left(found: PathDecision, wanted: PathEntry | None) -> bool:
    """Whether an uncovered path stays, and nothing has to replace it."""
    is_in_place = wanted is not None and wanted.kind is not EntryKind.SPECIAL
    return found.reason is ConflictReason.NOT_COVERED and not is_in_place


def _restored(facts: Facts) -> Restored:
    return Restored(
        key=str(facts["key"]),
        checkpoint=str(facts["checkpoint"]),
        before=str(facts["before"]),
        paths=paths_in(facts, "paths"),
        count=number_in(facts, "count"),
        left=paths_in(facts, "left"),
        rescued=paths_in(facts, "rescued"),
        with_git=bool(facts.get("git")),
        removed=number_in(facts, "removed") if "removed" in facts else 0,
    )
