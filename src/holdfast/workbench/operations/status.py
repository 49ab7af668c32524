"""Status of a project and its drafts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import PathVerdict
from holdfast.workbench.failures import DraftDamaged
from holdfast.workbench.handle import PUBLISHED, WorkbenchHandle
from holdfast.workbench.model import Checkpoint, Draft
from holdfast.workbench.operations.draft_selection import changed_in
from holdfast.workbench.operations.draft_state import draft_state
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import merges_of
from holdfast.workbench.operations.recovery import Recovered, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftStatus:
    """Status of a draft; `changed` excludes the `ignored` paths, which git ignores."""

    draft: Draft
    changed: int
    ignored: int
    conflicts: tuple[RelativePath, ...]
    merges: tuple[RelativePath, ...]
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbenchStatus:
    """Status of a project; `recovered` are transactions recovered just now."""

    id: str
    project: Path
    drafts: tuple[DraftStatus, ...] = ()
    damaged: tuple[DraftDamaged, ...] = ()
    checkpoints: int = 0
    last: Checkpoint | None = None
    recovered: tuple[Recovered, ...] = ()


def status(workbench: Workbench) -> WorkbenchStatus:
    if not workbench.is_used:
        return WorkbenchStatus(id=workbench.id, project=workbench.project)
    with workbench.locked() as (handle, recovered):
        every = [each for each in handle.store.checkpoints() if each.origin == PUBLISHED]
        found = changed_in(handle)
        theirs = handle.look() if found else None
        return WorkbenchStatus(
            id=workbench.id,
            project=workbench.project,
            drafts=tuple(_status(handle, draft, theirs) for draft in found),
            damaged=handle.drafts.damaged(),
            checkpoints=len(every),
            last=every[0] if every else None,
            recovered=recovered,
        )


def _status(handle: WorkbenchHandle, draft: Draft, theirs: Checkpoint | None) -> DraftStatus:
    with opened(handle, draft) as view:
        state = draft_state(handle, view, draft, theirs)
        ignored = ignored_paths(handle, state)
        decided = state.decided(ignored=ignored)
        merged, clashes = merges_of(handle.store, state, decided)
        stuck = {path for path, found in decided.items() if found.verdict is PathVerdict.CONFLICT}
        return DraftStatus(
            draft=state.draft,
            changed=len(state.changes) - len(ignored),
            ignored=len(ignored),
            conflicts=tuple(sorted(stuck | clashes)),
            merges=tuple(sorted(merged)),
            processes=view.processes,
        )
