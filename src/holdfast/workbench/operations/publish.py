"""Publish a draft: apply its reviewed changes, or a selection of them, to the project.

Only what was reviewed is published, nothing over concurrent changes of the project, and nothing
without a checkpoint of the project before.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import (
    Decisions,
    PathVerdict,
    changes_of,
    chosen_of,
    forced,
    is_own_repository,
    require_agreement,
    seal_of,
)
from holdfast.workbench.diff.unified import picked
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import DraftMerged, DraftMovedOn, HunkMissing, PublishedChanged
from holdfast.workbench.handle import WorkbenchHandle, is_draft_in_use
from holdfast.workbench.model import (
    Checkpoint,
    Committed,
    EntryKind,
    Occasion,
    PathChange,
    PathEntry,
)
from holdfast.workbench.operations.checkpoints import checkpoint_before, prune_after_operation
from holdfast.workbench.operations.draft_selection import resolve_draft
from holdfast.workbench.operations.draft_state import DraftChanges, DraftState, draft_state, made_in
from holdfast.workbench.operations.git_commit import CommitOrder, committed_in, prepare_commit
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import Merges, merge_into_draft, merges_of
from holdfast.workbench.operations.recovery import (
    OperationKind,
    TransactionIntent,
    facts_of,
    number_in,
    opened,
    paths_in,
    transact,
)
from holdfast.workbench.operations.reports import report_done, report_failed
from holdfast.workbench.operations.revisions import is_revision_due, revised
from holdfast.workbench.store.tree_queries import text_of, tree_with_entries
from holdfast.workbench.transaction.machine import Facts, TransactionResult


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOrder:
    """What to publish.

    `only` selects paths with all below them; None is everything. `hunks` selects hunks of single
    files by number. `force` are files that overwrite concurrent changes. Files ignored by git are
    published only `with_ignored` or if selected by name. `sealed` is the seal of the reviewed
    preview or of the whole draft. With `commit` the changes are committed to the project's
    repository. An order with the same `key` is executed once.
    """

    draft: str | None = None
    only: tuple[RelativePath, ...] | None = None
    hunks: Mapping[RelativePath, frozenset[int]] = field(
        default_factory=dict[RelativePath, frozenset[int]]
    )
    force: tuple[RelativePath, ...] = ()
    with_git: bool = False
    with_ignored: bool = False
    sealed: str | None = None
    commit: CommitOrder | None = None
    key: str | None = None

    @property
    def chosen(self) -> frozenset[RelativePath] | None:
        """Selected paths; None for all."""
        if self.only is None and not self.hunks:
            return None
        return frozenset((*(self.only or ()), *self.hunks))


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishResult:
    """Result of a publish.

    `checkpoint` is the project before; None if there was nothing to publish. `remaining` changes
    were not published, `ignored` of them because git ignores them. Concurrent changes that were
    overwritten are in the store (`rescued`). `with_git`: the project's own repository was changed,
    which a restore leaves alone unless asked.
    """

    key: str
    draft: str
    checkpoint: str | None
    paths: tuple[RelativePath, ...]
    count: int
    remaining: int
    rescued: tuple[RelativePath, ...] = ()
    with_git: bool = False
    commit: Committed | None = None
    ignored: int = 0


def publish(workbench: Workbench, order: PublishOrder) -> PublishResult:
    """Apply the selected changes of a draft to the project, all or none.

    Raises DraftMovedOn if it differs from the review, DraftMerged if a merge must be reviewed
    first, and PublishedChanged for conflicts.
    """
    with workbench.locked() as (handle, _):
        done = facts_of(handle, OperationKind.PUBLISH, order.key)
        if done is not None:
            return _published(done)
        found = resolve_draft(
            handle, order.draft, with_git=order.with_git, with_ignored=order.with_ignored
        )
        with opened(handle, found) as view:
            try:
                return _publish(handle, view, draft_state(handle, view, found), order)
            except Failure as failure:
                report_failed(handle, OperationKind.PUBLISH, failure, draft=found.id)
                raise


def _publish(
    handle: WorkbenchHandle, view: DraftView, state: DraftState, order: PublishOrder
) -> PublishResult:
    # Compared before anything is merged or written, so that a stale approval has no effect.
    seal = seal_of_plan(state, plan(handle, state, order).decided)
    if order.sealed is not None and order.sealed not in {seal, state.seal}:
        raise DraftMovedOn(draft=state.draft.id, sealed=order.sealed, seal=seal)
    agreed = _agreed(handle, view, state, order)
    changes = planned_changes(handle, state, agreed.decided, order)
    if not changes:
        return PublishResult(
            key=order.key or "",
            draft=state.draft.id,
            checkpoint=None,
            paths=(),
            count=0,
            remaining=len(state.changes),
            ignored=len(agreed.ignored),
        )
    commit = None if order.commit is None else prepare_commit(handle, changes, order.commit)
    # One transaction: the checkpoint, the new base and the revision cost a single fsync.
    before, after, is_due = handle.store.transaction(lambda: _kept(handle, state, changes))
    intent = TransactionIntent(
        deed=OperationKind.PUBLISH,
        key=order.key or handle.ids.make("publish"),
        draft=state.draft.id,
        base=after.base.id,
        revised=after.ours.id if is_due else None,
        is_new=order.key is None,
        facts={
            "checkpoint": before.id,
            "remaining": len(after.changes),
            "ignored": sum(each.path in agreed.ignored for each in after.changes),
            "forced": list(map(str, order.force)),
            "git": any(is_own_repository(each.path) for each in changes),
            **({} if commit is None else {"commit": commit}),
        },
    )
    # Overlayfs leaves no whiteouts in a directory without a lower one, so it must not merge with
    # the directory that the project gets now.
    view.detach(made_in(changes))
    facts = _transacted(handle, changes, intent)
    published = _published(facts)
    # Already published: errors from here on are only cleanup, which the next command repeats.
    with suppress(Failure, OSError):
        is_all = not published.remaining and state.ours.uncovered == before.uncovered
        if is_all and view.is_large and not is_draft_in_use(handle.drafts.home(state.draft)):
            view.clear()  # only saves space
    report_done(handle, OperationKind.PUBLISH, facts, changes, undo=before)
    prune_after_operation(handle)
    return published


def seal_of_plan(state: DraftState, decided: Decisions) -> str:
    """Seal of the selected changes; other writes in the draft do not invalidate it."""
    meant = {PathVerdict.APPLY, PathVerdict.MERGE, PathVerdict.CONFLICT}
    return seal_of(
        each
        for each in state.changes
        if each.path in decided and decided[each.path].verdict in meant
    )


class PublishPlan(NamedTuple):
    """Decisions of an order, merges into the draft that come first, and ignored paths."""

    decided: Decisions
    merges: Merges
    ignored: frozenset[RelativePath]


def plan(handle: WorkbenchHandle, state: DraftState, order: PublishOrder) -> PublishPlan:
    """Decide an order, without changing or refusing anything."""
    _, theirs, ours = state.trees
    ignored = frozenset[RelativePath]()
    if not order.with_ignored:
        ignored = ignored_paths(handle, state, order.chosen)
    decided = forced(
        state.decided(with_git=order.with_git, ignored=ignored),
        order.force,
        theirs,
        ours,
        uncovered=state.uncovered,
    )
    decided = chosen_of(decided, ours, order.chosen)
    return PublishPlan(decided, merges_of(handle.store, state, decided), ignored)


def planned_changes(
    handle: WorkbenchHandle, state: DraftState, decided: Decisions, order: PublishOrder
) -> tuple[PathChange, ...]:
    """Changes of the project that an order makes, down to hunks."""
    return _with_hunks(handle, changes_of(decided, *state.trees[1:]), order.hunks)


def _agreed(
    handle: WorkbenchHandle, view: DraftView, state: DraftState, order: PublishOrder
) -> PublishPlan:
    """Return the plan, if no conflict needs a decision."""
    agreed = plan(handle, state, order)
    decided, merged = agreed.decided, agreed.merges.merged
    require_agreement({path: found for path, found in decided.items() if path not in merged})
    if merged:
        merge_into_draft(handle, view, state, merged)
        found = handle.drafts.find(state.draft.id)
        revised(handle, draft_state(handle, view, found, state.theirs), "merged")
        raise DraftMerged(draft=state.draft.id, paths=tuple(map(str, sorted(merged))))
    return agreed


class _Kept(NamedTuple):
    """The project before, the draft afterwards, and whether a revision is due."""

    before: Checkpoint
    after: DraftChanges
    is_due: bool


def _kept(handle: WorkbenchHandle, state: DraftState, changes: tuple[PathChange, ...]) -> _Kept:
    """Store everything that must exist before the transaction."""
    said = f"before {state.draft.id}"
    before = checkpoint_before(handle, state.theirs, Occasion.PUBLISH, said)
    base = _next_base(handle, state, changes)
    after = DraftChanges(
        draft=state.draft,
        base=base,
        ours=state.ours,
        changes=handle.store.changes(base, state.ours),
    )
    return _Kept(before, after, is_revision_due(handle, after))


def _next_base(
    handle: WorkbenchHandle, state: DraftState, changes: tuple[PathChange, ...]
) -> Checkpoint:
    """Base of the draft after the publish: the old one with the published entries."""
    wanted = {each.path: each.after for each in changes}
    is_covered = not state.base.uncovered and not state.ours.uncovered
    if is_covered and wanted == {each.path: each.after for each in state.changes}:
        return state.ours  # everything was published
    return tree_with_entries(handle.store, state.base, wanted)


def _transacted(
    handle: WorkbenchHandle, changes: tuple[PathChange, ...], intent: TransactionIntent
) -> Facts:
    with handle.project_site() as site:
        outcome, facts = transact(handle, site, changes, intent)
    if outcome.result is not TransactionResult.FINISHED:
        raise PublishedChanged(paths=tuple(map(str, outcome.conflicts)))
    return facts


def _with_hunks(
    handle: WorkbenchHandle,
    changes: tuple[PathChange, ...],
    hunks: Mapping[RelativePath, frozenset[int]],
) -> tuple[PathChange, ...]:
    """Restrict files to their selected hunks."""
    changed = {change.path: change for change in changes}
    for path, numbers in hunks.items():
        change = changed.pop(path, None)
        after = change.after if change else None
        if change is None or after is None or after.kind is not EntryKind.FILE:
            raise HunkMissing(path=str(path), number=min(numbers, default=1), count=0)
        entry = _part(handle, change, after, numbers)
        if entry != change.before:
            changed[path] = PathChange(path, change.before, entry)
    return tuple(changed[path] for path in sorted(changed))


def _part(
    handle: WorkbenchHandle, change: PathChange, after: PathEntry, numbers: frozenset[int]
) -> PathEntry:
    """A file with some of its hunks; the new mode only if the file is new or complete."""
    old = text_of(handle.store, change.before) or b""
    new = text_of(handle.store, after)
    if new is None:
        raise HunkMissing(path=str(change.path), number=min(numbers, default=1), count=0)
    text = picked(change.path, old, new, numbers)
    if text == new:
        return after
    content, size = handle.store.put_content([text])
    kept = change.before if change.before and change.before.kind is EntryKind.FILE else after
    return replace(kept, content=content, size=size, mtime_ns=after.mtime_ns)


def _published(facts: Facts) -> PublishResult:
    return PublishResult(
        key=str(facts["key"]),
        draft=str(facts["draft"]),
        checkpoint=str(facts["checkpoint"]),
        paths=paths_in(facts, "paths"),
        count=number_in(facts, "count"),
        remaining=number_in(facts, "remaining"),
        ignored=number_in(facts, "ignored") if "ignored" in facts else 0,
        rescued=paths_in(facts, "rescued"),
        with_git=bool(facts.get("git")),
        commit=committed_in(facts),
    )
