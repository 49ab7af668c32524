"""Tell how a project and its drafts stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import Verdict
from holdfast.workbench.failures import DraftDamaged
from holdfast.workbench.handle import PUBLISHED, Held
from holdfast.workbench.model import Checkpoint, Draft
from holdfast.workbench.operations.draft_selection import changed_in
from holdfast.workbench.operations.draft_state import stand
from holdfast.workbench.operations.ignored_files import ignored_paths
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.project_merge import merges_of
from holdfast.workbench.operations.recovery import Recovered, opened


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftStatus:
    """A draft: how many paths it changes, what stands in the way, and how many work in it.

    `changed` does not count the `ignored` paths, which git ignores and publications leave out.
    """

    draft: Draft
    changed: int
    ignored: int
    conflicts: tuple[RelativePath, ...]
    merges: tuple[RelativePath, ...]
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A project: its drafts with changes, those that cannot be read, and what is kept of it.

    `recovered` is what was finished or undone just now.
    """

    id: str
    project: Path
    drafts: tuple[DraftStatus, ...] = ()
    damaged: tuple[DraftDamaged, ...] = ()
    checkpoints: int = 0
    last: Checkpoint | None = None
    recovered: tuple[Recovered, ...] = ()


def status(workbench: Workbench) -> Status:
    """How the project and every draft of it stand now."""
    if not workbench.is_used:
        return Status(id=workbench.id, project=workbench.project)
    with workbench.held() as (held, recovered):
        every = [each for each in held.store.checkpoints() if each.origin == PUBLISHED]
        found = changed_in(held)
        theirs = held.look() if found else None
        return Status(
            id=workbench.id,
            project=workbench.project,
            drafts=tuple(_status(held, draft, theirs) for draft in found),
            damaged=held.drafts.damaged(),
            checkpoints=len(every),
            last=every[0] if every else None,
            recovered=recovered,
        )


def _status(held: Held, draft: Draft, theirs: Checkpoint | None) -> DraftStatus:
    with opened(held, draft) as view:
        standing = stand(held, view, draft, theirs)
        ignored = ignored_paths(held, standing)
        decided = standing.decided(ignored=ignored)
        merged, clashes = merges_of(held.store, standing, decided)
        stuck = {path for path, found in decided.items() if found.verdict is Verdict.CONFLICT}
        return DraftStatus(
            draft=standing.draft,
            changed=len(standing.changes) - len(ignored),
            ignored=len(ignored),
            conflicts=tuple(sorted(stuck | clashes)),
            merges=tuple(sorted(merged)),
            processes=view.processes,
        )
