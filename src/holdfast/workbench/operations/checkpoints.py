"""Operations on checkpoints: create, list, show, compare, prune."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.workbench.diff.three_way import is_chosen
from holdfast.workbench.failures import CheckpointCreateFailed
from holdfast.workbench.handle import PUBLISHED, WorkbenchHandle, encodable
from holdfast.workbench.model import Checkpoint, Occasion, UncoveredPath
from holdfast.workbench.operations.change_view import FileDiff, file_diffs, write_patch
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import Recovered
from holdfast.workbench.store.pruning import KEEP_MIN, Pruned, Usage, load, prune, usage
from holdfast.workbench.store.store import CheckpointSource
from holdfast.workbench.store.tree_queries import find_checkpoint

# Hysteresis: not every checkpoint triggers a pruning.
_SLACK_SHARE = 5
_OPERATIONS_BETWEEN = 8
NOW = "now"
"""Stands for the current project instead of a checkpoint id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCheckpoint:
    """A checkpoint with its uncovered paths."""

    checkpoint: Checkpoint
    uncovered: tuple[UncoveredPath, ...]


def checkpoint(
    workbench: Workbench, message: str = "", occasion: Occasion = Occasion.MANUAL
) -> Checkpoint:
    """Make a checkpoint of the project; durable on return."""
    with workbench.locked() as (handle, _):
        subject = CheckpointSource(
            handle.context.project, PUBLISHED, on_progress=handle.context.on_progress
        )
        made = handle.store.checkpoint(subject, occasion, encodable(message))
        facts = {"checkpoint": made.id, "files": made.files, "uncovered": made.uncovered}
        handle.records.note("checkpoint_created", facts, key=made.id)
        prune_after_operation(handle)
        return made


def checkpoints(workbench: Workbench, *, of_drafts: bool = False) -> tuple[Checkpoint, ...]:
    """Checkpoints of the project, newest first; with `of_drafts`, those of drafts, too."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        every = handle.store.checkpoints()
    return tuple(each for each in every if of_drafts or each.origin == PUBLISHED)


def show(workbench: Workbench, id: str) -> ShownCheckpoint:
    """Return a checkpoint by id or unique prefix."""
    with workbench.locked() as (handle, _):
        found = find_checkpoint(handle.store, id)
        return ShownCheckpoint(checkpoint=found, uncovered=handle.store.uncovered(found))


def compare(
    workbench: Workbench,
    before: str,
    after: str = NOW,
    paths: Sequence[RelativePath] = (),
    *,
    patch: BinaryIO | None = None,
) -> tuple[FileDiff, ...]:
    """Compare two checkpoints, or one with the current project.

    A `patch` file receives the changes for `git apply`.
    """
    only = frozenset(paths) or None
    with workbench.locked() as (handle, _):
        one, other = (
            handle.look() if id == NOW else find_checkpoint(handle.store, id)
            for id in (before, after)
        )
        every = handle.store.changes(one, other)
        changes = [each for each in every if is_chosen(each.path, only)]
        if patch is not None:
            write_patch(handle.store, changes, patch)
        return file_diffs(handle.store, changes)


def recover(workbench: Workbench) -> tuple[Recovered, ...]:
    """Recover interrupted transactions, as every opening does; return them."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (_, recovered):
        return recovered


def storage_use(workbench: Workbench) -> Usage:
    """Disk usage of a project."""
    with workbench.locked() as (handle, _):
        return usage(handle.store)


def prune_checkpoints(
    workbench: Workbench,
    *,
    quota_bytes: int | None = None,
    with_manual: bool = False,
    is_trial: bool = False,
) -> Pruned:
    """Remove old checkpoints that no draft depends on; manual ones only `with_manual`.

    A trial changes nothing.
    """
    with workbench.locked() as (handle, _):
        pruned = prune(
            handle.store,
            quota_bytes=quota_bytes,
            in_use=handle.in_use(),
            with_manual=with_manual,
            is_trial=is_trial,
            on_progress=handle.context.on_progress,
        )
        if not is_trial:
            facts = {
                "checkpoints": len(pruned.checkpoints),
                "bytes_before": pruned.bytes_before,
                "bytes_after": pruned.bytes_after,
            }
            handle.records.note("pruned", facts)
        return pruned


def prune_after_operation(handle: WorkbenchHandle, keep_min: int = KEEP_MIN) -> None:
    """Prune if there are too many checkpoints, on every eighth operation of a handle."""
    if next(handle.operation_numbers) % _OPERATIONS_BETWEEN == 0:
        prune_surplus(handle, keep_min)


def prune_surplus(
    handle: WorkbenchHandle, keep_min: int = KEEP_MIN, quota_bytes: int | None = None
) -> None:
    """Prune when well above the limits, with some slack for the next operations.

    If the store stays above its quota, the remaining size is recorded and pruning waits for growth.
    Errors are ignored: the preceding operation has succeeded.
    """
    with suppress(Failure, OSError):
        use = load(handle.store)
        quota = use.quota_bytes if quota_bytes is None else quota_bytes
        many = keep_min + keep_min // _SLACK_SHARE
        is_over = use.kept_bytes > quota and use.kept_bytes > _stayed_and_more(handle)
        if use.checkpoints <= many and not is_over:
            # Cheap exit without reading the drafts.
            return
        in_use = handle.in_use()
        if use.checkpoints - len(in_use) > many or is_over:
            pruned = prune(
                handle.store,
                quota_bytes=quota - quota // _SLACK_SHARE,
                keep_min=keep_min + len(in_use),
                in_use=in_use,
            )
            _stayed(handle).write_text(f"{pruned.bytes_after}", encoding="ascii")


def _stayed(handle: WorkbenchHandle) -> Path:
    """File with the size after the last pruning; a hint only."""
    return handle.context.directory / "stayed"


def _stayed_and_more(handle: WorkbenchHandle) -> int:
    try:
        stayed = int(_stayed(handle).read_text("ascii"))
    except (OSError, ValueError):
        return 0
    return stayed + stayed // _SLACK_SHARE


def checkpoint_before(
    handle: WorkbenchHandle, theirs: Checkpoint, occasion: Occasion, message: str
) -> Checkpoint:
    """Record a checkpoint of the scanned project; raises CheckpointCreateFailed."""
    try:
        return handle.store.record_checkpoint(theirs, occasion, message)
    except Failure as failure:
        raise CheckpointCreateFailed(
            path=str(handle.context.project), reason=str(failure)
        ) from failure
