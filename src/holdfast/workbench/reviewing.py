"""Show what a draft changes, and seal it: what is published is what was reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.nouns import RelativePath
from holdfast.workbench.core.three_way import Clashing, Verdict, is_chosen
from holdfast.workbench.merging import merges_of
from holdfast.workbench.model import Draft, Lack, Uncovered
from holdfast.workbench.recovering import opened
from holdfast.workbench.showing import FileDiff, file_diffs
from holdfast.workbench.standing import Standing, stand
from holdfast.workbench.store import Store
from holdfast.workbench.workbench import Workbench


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One path that somebody must decide about before it can be published, and why."""

    path: RelativePath
    reason: Clashing


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All that a draft changes, and what would become of it.

    `withheld` is what is not published unless it is asked for; `merges` will be merged into the
    draft first; `uncovered` is what of the draft cannot be published at all.
    """

    draft: Draft
    seal: str
    files: tuple[FileDiff, ...]
    withheld: tuple[RelativePath, ...]
    conflicts: tuple[Conflict, ...]
    merges: tuple[RelativePath, ...]
    uncovered: tuple[Uncovered, ...]


def review(
    workbench: Workbench, draft: str | None = None, paths: Sequence[RelativePath] = ()
) -> Review:
    """What a draft changes, all of it or at these paths; the seal is always that of all."""
    with workbench.held() as (held, _):
        found = held.drafts.find(draft)
        with opened(held, found) as view:
            standing = stand(held, view, found)
        return _review(held.store, standing, frozenset(paths) or None)


def _review(store: Store, standing: Standing, only: frozenset[RelativePath] | None) -> Review:
    decided = standing.decided()
    merged, clashes = merges_of(store, standing, decided)
    conflicts = {
        path: found.reason
        for path, found in decided.items()
        if found.verdict is Verdict.CONFLICT and found.reason is not None
    }
    conflicts |= dict.fromkeys(clashes, Clashing.BOTH_CHANGED)
    withheld = [path for path, found in decided.items() if found.verdict is Verdict.WITHHELD]
    return Review(
        draft=standing.draft,
        seal=standing.seal,
        files=file_diffs(
            store,
            (
                change
                for change in standing.changes
                if is_chosen(change.path, only) and change.path not in {*withheld}
            ),
        ),
        withheld=tuple(path for path in withheld if is_chosen(path, only)),
        conflicts=tuple(
            Conflict(path=path, reason=reason)
            for path, reason in sorted(conflicts.items())
            if is_chosen(path, only)
        ),
        merges=tuple(path for path in sorted(merged) if is_chosen(path, only)),
        uncovered=tuple(
            each
            for each in store.uncovered(standing.ours)
            if is_chosen(each.path, only) and each.lack is not Lack.POLICY
        ),
    )
