"""How a draft and its project stand to each other, as of one moment.

What the person changed in the project shows in a layer by itself, except where the draft wrote. A
copy, and what was written in a layer without a difference, follow here: what is in the draft as it
was at its base becomes as it is in the project now. Wherever draft and project are the same, that
is the base from then on; elsewhere the base stays what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench.core.publication import Purpose, Way
from holdfast.workbench.core.seal import seal_of
from holdfast.workbench.core.selection import Trees, differing
from holdfast.workbench.core.three_way import Decisions, changes_of, decide_all
from holdfast.workbench.holding import Held
from holdfast.workbench.knowing import combined, latest, obscured
from holdfast.workbench.model import Change, Checkpoint, Draft, Lack, Occasion, Uncovered
from holdfast.workbench.overlay_sync import follow_project
from holdfast.workbench.store import Subject
from holdfast.workbench.transaction import carry_out
from holdfast.workbench.views import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A draft, what it is counted from, and what it changes of that."""

    draft: Draft
    base: Checkpoint
    ours: Checkpoint
    changes: tuple[Change, ...]

    @property
    def seal(self) -> str:
        """What a review of this draft approves of."""
        return seal_of(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing(Own):
    """The same with the project as it is now, and where all three differ.

    `uncovered` is what of the project cannot be kept, and must stay as it is.
    """

    theirs: Checkpoint
    trees: Trees
    uncovered: frozenset[RelativePath]

    def decided(
        self, *, with_git: bool = False, ignored: frozenset[RelativePath] = frozenset()
    ) -> Decisions:
        """What a publication would do to each path; nothing to those that are ignored."""
        return decide_all(
            *self.trees,
            uncovered=self.uncovered,
            publishes_repository=with_git,
            withheld=ignored,
        )


def stand(held: Held, view: View, draft: Draft, theirs: Checkpoint | None = None) -> Standing:
    """Bring a draft up to date with its project, and tell how they stand to each other.

    `theirs` is the project, if somebody has just looked at it.
    """
    theirs = theirs or held.look()
    draft, base = _based(held, view, draft, theirs)
    follow_project(held, view, draft, held.store.changes(base, theirs), theirs)
    ours = _look(held, view, draft, theirs)
    ours = _follow(held, view, draft, (base, theirs, ours))
    draft, base = _rebased(held, draft, (base, theirs, ours))
    changes = held.store.changes(base, ours)
    hidden = obscured(held.store, base, theirs, ours)
    return Standing(
        draft=draft,
        base=base,
        ours=ours,
        changes=changes,
        theirs=theirs,
        trees=differing(held.store.changes(base, theirs), changes, hidden),
        uncovered=uncovered_in(held, theirs),
    )


def own_of(held: Held, view: View, draft: Draft) -> Own:
    """What a draft that was brought up to date before changes now; the project is not looked at.

    In a layer it costs what was written.
    """
    if draft.base is None:
        return stand(held, view, draft)
    base = held.store.find(draft.base)
    ours = _look(held, view, draft, base)
    return Own(draft=draft, base=base, ours=ours, changes=held.store.changes(base, ours))


def uncovered_in(held: Held, checkpoint: Checkpoint) -> frozenset[RelativePath]:
    """The paths that a checkpoint does not cover."""
    if not checkpoint.uncovered:
        return frozenset()
    return frozenset(each.path for each in held.store.uncovered(checkpoint))


def unpublishable(held: Held, standing: Standing) -> tuple[Uncovered, ...]:
    """What is in a draft, not in its project, and cannot be kept: so it cannot be published."""
    if not standing.ours.uncovered:
        return ()
    return tuple(
        each
        for each in held.store.uncovered(standing.ours)
        if each.lack is not Lack.POLICY and each.path not in standing.uncovered
    )


def _look(held: Held, view: View, draft: Draft, over: Checkpoint) -> Checkpoint:
    """Keep the draft as it is now: what was written in a layer, set into what is below it."""
    origin = f"draft-{draft.id}"
    touched = view.touched()
    subject = Subject(
        held.drafts.copy_of(draft) if touched is None else Path(f"/proc/self/fd/{view.root}"),
        origin,
        news=held.bench.news,
        like=latest(held.store, origin),
        hides_mapped_writes=view.hides_mapped_writes,
    )
    if touched is None:
        return held.store.checkpoint(subject, Occasion.AUTO)
    return held.store.graft(over, subject, touched, Occasion.AUTO)


_Three = tuple[Checkpoint, Checkpoint, Checkpoint]


def _based(held: Held, view: View, draft: Draft, theirs: Checkpoint) -> tuple[Draft, Checkpoint]:
    """The base of a draft; one into which nothing was let yet is as it was made."""
    if draft.base is not None:
        return draft, held.store.find(draft.base)
    is_layer = view.touched() is not None
    base = theirs if is_layer else _look(held, view, draft, theirs)
    draft = replace(draft, base=base.id)
    held.drafts.save(draft)
    return draft, base


def _follow(held: Held, view: View, draft: Draft, three: _Three) -> Checkpoint:
    """Let the draft have what changed in the project where it changed nothing itself."""
    base, theirs, ours = three
    news = held.store.changes(base, theirs)
    hidden = obscured(held.store, base, ours, theirs)
    if not news and not hidden:
        return ours
    trees = differing(held.store.changes(base, ours), news, hidden)
    decided = decide_all(*trees, uncovered=uncovered_in(held, ours), publishes_repository=True)
    changes = changes_of(decided, trees.theirs, trees.ours)
    if not changes:
        return ours
    outcome = carry_out(
        held.draft_site(draft, view),
        held.store,
        changes,
        purpose=Purpose(held.ids.make("tx")),
        tell=lambda _: None,
        news=held.bench.news,
    )
    if outcome.way is not Way.FINISHED:  # somebody writes there at this moment: it can wait
        return ours
    return _look(held, view, draft, theirs)


def _rebased(held: Held, draft: Draft, three: _Three) -> tuple[Draft, Checkpoint]:
    """Take the project as it is now for the base, but not where the draft differs from it."""
    base, theirs, ours = three
    moved = {change.path for change in held.store.changes(base, theirs)}
    hidden = obscured(held.store, base, theirs, ours)
    moved |= hidden.keys()
    if not moved:
        return draft, base
    apart = {change.path for change in held.store.changes(theirs, ours)}
    apart |= {path for path, one in hidden.items() if one.theirs != one.ours}
    kept = moved & apart
    now = combined(held.store, theirs, base, kept) if kept else theirs
    if now.tree == base.tree:
        return draft, base
    draft = replace(draft, base=now.id)
    held.drafts.save(draft)
    return draft, now
