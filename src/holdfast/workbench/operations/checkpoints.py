"""Checkpoints of a project: made, listed, shown, compared and tidied up."""

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

_SLACK_SHARE = 5  # so that not every checkpoint is paid for with a pruning
_OPERATIONS_BETWEEN = 8
NOW = "now"
"""In place of a checkpoint: the project as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCheckpoint:
    """A checkpoint, and every path that it does not cover, with the reason."""

    checkpoint: Checkpoint
    uncovered: tuple[UncoveredPath, ...]


def checkpoint(
    workbench: Workbench, message: str = "", occasion: Occasion = Occasion.MANUAL
) -> Checkpoint:
    """Keep the project as it is; durable when it returns."""
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
    """The checkpoints of the project, the newest first; those of its drafts, too, if asked for."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (handle, _):
        every = handle.store.checkpoints()
    return tuple(each for each in every if of_drafts or each.origin == PUBLISHED)


def show(workbench: Workbench, id: str) -> ShownCheckpoint:
    """A checkpoint, by its id or the beginning of just one."""
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
    """What differs between two checkpoints, or between one and the project as it is now.

    `patch` is a file that gets all of it in the form that `git apply` takes.
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
    """Finish or undo what was interrupted, as holding the workbench does by itself; say which."""
    if not workbench.is_used:
        return ()
    with workbench.locked() as (_, recovered):
        return recovered


def storage_use(workbench: Workbench) -> Usage:
    """How much room is taken by what is kept of the project."""
    with workbench.locked() as (handle, _):
        return usage(handle.store)


def prune_checkpoints(
    workbench: Workbench,
    *,
    quota_bytes: int | None = None,
    with_manual: bool = False,
    is_trial: bool = False,
) -> Pruned:
    """Remove old checkpoints, but none that a draft builds on; a trial only says which.

    Those that a person made by hand go only `with_manual`.
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
    """Let old checkpoints go if there are too many; who does much in one hold asks only at times.

    What comes with a few deeds more is far less than what may stay anyway.
    """
    if next(handle.operation_numbers) % _OPERATIONS_BETWEEN == 0:
        prune_surplus(handle, keep_min)


def prune_surplus(
    handle: WorkbenchHandle, keep_min: int = KEEP_MIN, quota_bytes: int | None = None
) -> None:
    """Let old checkpoints go by themselves once there are many more than enough, or too large.

    As much goes as makes room for a while. What then is still too large stays so: it is not tried
    again before more has come. It is only tidying: that it fails is no reason to say that what was
    done before it did.
    """
    with suppress(Failure, OSError):
        use = load(handle.store)
        quota = use.quota_bytes if quota_bytes is None else quota_bytes
        many = keep_min + keep_min // _SLACK_SHARE
        is_over = use.kept_bytes > quota and use.kept_bytes > _stayed_and_more(handle)
        if use.checkpoints <= many and not is_over:
            return  # the drafts need not be asked
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
    """Where it is written down how much stayed when it was last tidied; nothing depends on it."""
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
    """A checkpoint of the project as it was just seen, without which nothing is done to it."""
    try:
        return handle.store.record_checkpoint(theirs, occasion, message)
    except Failure as failure:
        raise CheckpointCreateFailed(
            path=str(handle.context.project), reason=str(failure)
        ) from failure
