"""Publish a draft: all that was reviewed, or what was chosen of it, goes into the project.

Nothing is published that was not reviewed as it is, nothing over what the person changed meanwhile,
and nothing without a checkpoint of the project as it was.
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
    Verdict,
    changes_of,
    chosen_of,
    forced,
    is_own_repository,
    require_agreement,
    seal_of,
)
from holdfast.workbench.diff.unified import picked
from holdfast.workbench.draft.view import View
from holdfast.workbench.failures import DraftMerged, DraftMovedOn, HunkMissing, PublishedChanged
from holdfast.workbench.handle import Held, is_visited
from holdfast.workbench.model import (
    Checkpoint,
    Committed,
    EntryKind,
    Occasion,
    PathChange,
    PathEntry,
)
from holdfast.workbench.operations.checkpoints import kept_before, tidy_after_deed
from holdfast.workbench.operations.draft_selection import meant_draft
from holdfast.workbench.operations.draft_state import Own, Standing, made_in, stand
from holdfast.workbench.operations.git_commit import CommitOrder, committed_in, prepare_commit
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import Merges, merge_into_draft, merges_of
from holdfast.workbench.operations.recovery import (
    Deed,
    Intent,
    facts_of,
    number_in,
    opened,
    paths_in,
    transact,
)
from holdfast.workbench.operations.reports import report_done, report_failed
from holdfast.workbench.operations.revisions import is_revision_due, revised
from holdfast.workbench.store.tree_queries import text_of, tree_with_entries
from holdfast.workbench.transaction.machine import Facts, Way


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOrder:
    """What is to be published.

    `only` are the paths that were chosen, with all below them; without any it is all. Of a file in
    `hunks` only the hunks of these numbers are. `force` are files that go over what the person
    changed meanwhile. What git ignores is published only `with_ignored`, or if it is itself one of
    the paths that were chosen. `sealed` is the seal of the preview of this order, or of the whole
    draft. With `commit` what is published is committed to the project's repository. With the same
    `key`, it is done once.
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
        """The paths that were chosen in any way; None for all."""
        if self.only is None and not self.hunks:
            return None
        return frozenset((*(self.only or ()), *self.hunks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was published: how many paths, and the first of them.

    `checkpoint` is the project as it was before; without one there was nothing to publish.
    `remaining` changes of the draft were not published, `ignored` of them because git ignores
    them. What somebody else wrote at the same time and was overwritten is `rescued` in the store.
    `with_git`: some of it is in the project's own repository, which a restore leaves alone unless
    it is asked for.
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


def publish(workbench: Workbench, order: PublishOrder) -> Published:
    """Bring the changes of a draft into the project, all that were chosen or none.

    Raises DraftMovedOn if it is not what was reviewed, DraftMerged if something was merged into
    it that must be reviewed first, PublishedChanged if somebody must decide about a file.
    """
    with workbench.held() as (held, _):
        done = facts_of(held, Deed.PUBLISH, order.key)
        if done is not None:
            return _published(done)
        found = meant_draft(
            held, order.draft, with_git=order.with_git, with_ignored=order.with_ignored
        )
        with opened(held, found) as view:
            try:
                return _publish(held, view, stand(held, view, found), order)
            except Failure as failure:
                report_failed(held, Deed.PUBLISH, failure, draft=found.id)
                raise


def _publish(held: Held, view: View, standing: Standing, order: PublishOrder) -> Published:
    seal = seal_of_plan(standing, plan(held, standing, order).decided)
    if order.sealed is not None and order.sealed not in {seal, standing.seal}:
        raise DraftMovedOn(draft=standing.draft.id, sealed=order.sealed, seal=seal)
    agreed = _agreed(held, view, standing, order)
    changes = planned_changes(held, standing, agreed.decided, order)
    if not changes:
        return Published(
            key=order.key or "",
            draft=standing.draft.id,
            checkpoint=None,
            paths=(),
            count=0,
            remaining=len(standing.changes),
            ignored=len(agreed.ignored),
        )
    commit = None if order.commit is None else prepare_commit(held, changes, order.commit)
    before, after, is_due = held.store.transaction(lambda: _kept(held, standing, changes))
    intent = Intent(
        deed=Deed.PUBLISH,
        key=order.key or held.ids.make("publish"),
        draft=standing.draft.id,
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
    # The kernel keeps a directory of the layer that the project has not for one without a lower
    # layer, and leaves no whiteouts in it: so it must stay one when the project gets it now.
    view.detach(made_in(changes))
    facts = _transacted(held, changes, intent)
    published = _published(facts)
    # It is published: what is missing here, the next command makes up for.
    with suppress(Failure, OSError):
        is_all = not published.remaining and standing.ours.uncovered == before.uncovered
        if is_all and view.is_large and not is_visited(held.drafts.home(standing.draft)):
            view.clear()  # the project has it; while somebody is inside, it does no harm
    report_done(held, Deed.PUBLISH, facts, changes, undo=before)
    tidy_after_deed(held)
    return published


def seal_of_plan(standing: Standing, decided: Decisions) -> str:
    """The seal of what is chosen: what else is written in the draft does not make it stale."""
    meant = {Verdict.APPLY, Verdict.MERGE, Verdict.CONFLICT}
    return seal_of(
        each
        for each in standing.changes
        if each.path in decided and decided[each.path].verdict in meant
    )


class Plan(NamedTuple):
    """What an order comes to: the verdict on each path, and what is merged into the draft first."""

    decided: Decisions
    merges: Merges
    ignored: frozenset[RelativePath]


def plan(held: Held, standing: Standing, order: PublishOrder) -> Plan:
    """Decide what an order comes to; nothing is done, and nothing is refused yet."""
    _, theirs, ours = standing.trees
    ignored = frozenset[RelativePath]()
    if not order.with_ignored:
        ignored = ignored_paths(held, standing, order.chosen)
    decided = forced(
        standing.decided(with_git=order.with_git, ignored=ignored),
        order.force,
        theirs,
        ours,
        uncovered=standing.uncovered,
    )
    decided = chosen_of(decided, ours, order.chosen)
    return Plan(decided, merges_of(held.store, standing, decided), ignored)


def planned_changes(
    held: Held, standing: Standing, decided: Decisions, order: PublishOrder
) -> tuple[PathChange, ...]:
    """What an order changes in the project, down to the hunks."""
    return _with_hunks(held, changes_of(decided, *standing.trees[1:]), order.hunks)


def _agreed(held: Held, view: View, standing: Standing, order: PublishOrder) -> Plan:
    """What is to be done, if nobody must decide about anything first."""
    agreed = plan(held, standing, order)
    decided, merged = agreed.decided, agreed.merges.merged
    require_agreement({path: found for path, found in decided.items() if path not in merged})
    if merged:
        merge_into_draft(held, view, standing, merged)
        found = held.drafts.find(standing.draft.id)
        revised(held, stand(held, view, found, standing.theirs), "merged")
        raise DraftMerged(draft=standing.draft.id, paths=tuple(map(str, sorted(merged))))
    return agreed


class _Kept(NamedTuple):
    """The project before, the draft afterwards, and whether that is a revision of it."""

    before: Checkpoint
    after: Own
    is_due: bool


def _kept(held: Held, standing: Standing, changes: tuple[PathChange, ...]) -> _Kept:
    """Keep all that must be there before anything is done."""
    said = f"before {standing.draft.id}"
    before = kept_before(held, standing.theirs, Occasion.PUBLISH, said)
    base = _next_base(held, standing, changes)
    after = Own(
        draft=standing.draft,
        base=base,
        ours=standing.ours,
        changes=held.store.changes(base, standing.ours),
    )
    return _Kept(before, after, is_revision_due(held, after))


def _next_base(held: Held, standing: Standing, changes: tuple[PathChange, ...]) -> Checkpoint:
    """What the draft is counted from next: what it was, but with what is published of it."""
    wanted = {each.path: each.after for each in changes}
    is_covered = not standing.base.uncovered and not standing.ours.uncovered
    if is_covered and wanted == {each.path: each.after for each in standing.changes}:
        return standing.ours  # it is all that the draft changes
    return tree_with_entries(held.store, standing.base, wanted)


def _transacted(held: Held, changes: tuple[PathChange, ...], intent: Intent) -> Facts:
    with held.project_site() as site:
        outcome, facts = transact(held, site, changes, intent)
    if outcome.way is not Way.FINISHED:
        raise PublishedChanged(paths=tuple(map(str, outcome.conflicts)))
    return facts


def _with_hunks(
    held: Held, changes: tuple[PathChange, ...], hunks: Mapping[RelativePath, frozenset[int]]
) -> tuple[PathChange, ...]:
    """The changes with only the chosen hunks of these files."""
    changed = {change.path: change for change in changes}
    for path, numbers in hunks.items():
        change = changed.pop(path, None)
        after = change.after if change else None
        if change is None or after is None or after.kind is not EntryKind.FILE:
            raise HunkMissing(path=str(path), number=min(numbers, default=1), count=0)
        entry = _part(held, change, after, numbers)
        if entry != change.before:
            changed[path] = PathChange(path, change.before, entry)
    return tuple(changed[path] for path in sorted(changed))


def _part(held: Held, change: PathChange, after: PathEntry, numbers: frozenset[int]) -> PathEntry:
    """A file with some of its hunks; it has the new mode if it is new, or all that is new."""
    old = text_of(held.store, change.before) or b""
    new = text_of(held.store, after)
    if new is None:
        raise HunkMissing(path=str(change.path), number=min(numbers, default=1), count=0)
    text = picked(change.path, old, new, numbers)
    if text == new:
        return after
    content, size = held.store.put_content([text])
    kept = change.before if change.before and change.before.kind is EntryKind.FILE else after
    return replace(kept, content=content, size=size, mtime_ns=after.mtime_ns)


def _published(facts: Facts) -> Published:
    return Published(
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
