"""Merge what the person changed in the project into the draft, to be reviewed there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import Merged, is_text, merge
from holdfast.workbench.diff.three_way import Decisions, Verdict, merged_entry
from holdfast.workbench.draft.view import View
from holdfast.workbench.failures import BatchStale
from holdfast.workbench.handle import Held
from holdfast.workbench.model import PathChange
from holdfast.workbench.operations.draft_state import Standing
from holdfast.workbench.operations.recovery import Deed, Intent, transact
from holdfast.workbench.store.store import Store
from holdfast.workbench.store.tree_queries import combined, store_contents, text_of
from holdfast.workbench.transaction.machine import Way


class Merges(NamedTuple):
    """Files that both changed: the text of those that go together, and those that do not."""

    merged: dict[RelativePath, bytes]
    clashes: frozenset[RelativePath]


def merges_of(store: Store, standing: Standing, decided: Decisions) -> Merges:
    """Try to merge every file that was changed on both sides."""
    merged: dict[RelativePath, bytes] = {}
    clashes: set[RelativePath] = set()
    for path in (path for path, found in decided.items() if found.verdict is Verdict.MERGE):
        text = _merged(store, standing, path)
        if text is None:
            clashes.add(path)
        else:
            merged[path] = text
    return Merges(merged, frozenset(clashes))


def merge_into_draft(
    held: Held, view: View, standing: Standing, merged: Mapping[RelativePath, bytes]
) -> None:
    """Put merged texts into the draft, all or none; from then on they are changes like others."""
    base, theirs, ours = standing.trees
    changes: list[PathChange] = []
    kept = store_contents(held.store, list(merged.values()))
    for path, (content, size) in zip(merged, kept, strict=True):
        entry = merged_entry(base[path], theirs[path], ours[path], content, size)
        if entry != ours[path]:
            changes.append(PathChange(path, ours[path], entry))
    put_into_draft(held, view, standing, tuple(changes), merged)


def put_into_draft(
    held: Held,
    view: View,
    standing: Standing,
    changes: tuple[PathChange, ...],
    resolved: Iterable[RelativePath],
) -> None:
    """Change a draft, all or nothing; at the resolved paths it is counted from the project now."""
    rebased = combined(held.store, standing.base, standing.theirs, resolved)
    intent = Intent(
        deed=Deed.MERGE,
        key=held.ids.make("merge"),
        draft=standing.draft.id,
        base=rebased.id,
    )
    site = held.draft_site(standing.draft, view)
    outcome, _ = transact(held, site, changes, intent)
    if outcome.way is not Way.FINISHED:
        raise BatchStale(paths=tuple(map(str, outcome.conflicts)))


def _merged(store: Store, standing: Standing, path: RelativePath) -> bytes | None:
    base, theirs, ours = (text_of(store, tree.get(path)) for tree in standing.trees)
    if base is None or theirs is None or ours is None:
        return None
    if not (is_text(base) and is_text(theirs) and is_text(ours)):
        return None
    result = merge(base, theirs, ours)
    return result.content if isinstance(result, Merged) else None
