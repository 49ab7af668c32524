"""Merge changes of the project into a draft, for review."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.merge import MergedText, is_text, merge
from holdfast.workbench.diff.three_way import Decisions, PathVerdict, merged_entry
from holdfast.workbench.draft.view import DraftView
from holdfast.workbench.failures import BatchStale
from holdfast.workbench.handle import WorkbenchHandle
from holdfast.workbench.model import PathChange
from holdfast.workbench.operations.draft_state import DraftState
from holdfast.workbench.operations.recovery import OperationKind, TransactionIntent, transact
from holdfast.workbench.store.store import Store
from holdfast.workbench.store.tree_queries import combined, store_contents, text_of
from holdfast.workbench.transaction.machine import TransactionResult


class Merges(NamedTuple):
    """Texts that merged without conflict, and paths with conflicts."""

    merged: dict[RelativePath, bytes]
    clashes: frozenset[RelativePath]


def merges_of(store: Store, state: DraftState, decided: Decisions) -> Merges:
    """Merge every file that both sides changed."""
    merged: dict[RelativePath, bytes] = {}
    clashes: set[RelativePath] = set()
    for path in (path for path, found in decided.items() if found.verdict is PathVerdict.MERGE):
        text = _merged(store, state, path)
        if text is None:
            clashes.add(path)
        else:
            merged[path] = text
    return Merges(merged, frozenset(clashes))


def merge_into_draft(
    handle: WorkbenchHandle,
    view: DraftView,
    state: DraftState,
    merged: Mapping[RelativePath, bytes],
) -> None:
    """Write merged texts to the draft, all or none."""
    base, theirs, ours = state.trees
    changes: list[PathChange] = []
    kept = store_contents(handle.store, list(merged.values()))
    for path, (content, size) in zip(merged, kept, strict=True):
        entry = merged_entry(base[path], theirs[path], ours[path], content, size)
        if entry != ours[path]:
            changes.append(PathChange(path, ours[path], entry))
    put_into_draft(handle, view, state, tuple(changes), merged)


def put_into_draft(
    handle: WorkbenchHandle,
    view: DraftView,
    state: DraftState,
    changes: tuple[PathChange, ...],
    resolved: Iterable[RelativePath],
) -> None:
    """Change a draft atomically; resolved paths are rebased to the project."""
    rebased = combined(handle.store, state.base, state.theirs, resolved)
    intent = TransactionIntent(
        deed=OperationKind.MERGE,
        key=handle.ids.make("merge"),
        draft=state.draft.id,
        base=rebased.id,
    )
    site = handle.draft_site(state.draft, view)
    outcome, _ = transact(handle, site, changes, intent)
    if outcome.result is not TransactionResult.FINISHED:
        raise BatchStale(paths=tuple(map(str, outcome.conflicts)))


def _merged(store: Store, state: DraftState, path: RelativePath) -> bytes | None:
    base, theirs, ours = (text_of(store, tree.get(path)) for tree in state.trees)
    if base is None or theirs is None or ours is None:
        return None
    if not (is_text(base) and is_text(theirs) and is_text(ours)):
        return None
    result = merge(base, theirs, ours)
    return result.content if isinstance(result, MergedText) else None
