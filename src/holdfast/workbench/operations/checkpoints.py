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
from holdfast.workbench.handle import PUBLISHED, Held, writable
from holdfast.workbench.model import Checkpoint, Occasion, UncoveredPath
from holdfast.workbench.operations.change_view import FileDiff, file_diffs, write_patch
from holdfast.workbench.operations.open import Workbench
from holdfast.workbench.operations.recovery import Recovered
from holdfast.workbench.store.pruning import Pruned, Usage, load, prune, usage
from holdfast.workbench.store.retention import KEEP_MIN
from holdfast.workbench.store.store import CheckpointSource
from holdfast.workbench.store.tree_queries import find_checkpoint

_SLACK_SHARE = 5  # so that not every checkpoint is paid for with a pruning
_DEEDS_BETWEEN = 8
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
    with workbench.held() as (held, _):
        subject = CheckpointSource(held.bench.project, PUBLISHED, news=held.bench.news)
        made = held.store.checkpoint(subject, occasion, writable(message))
        facts = {"checkpoint": made.id, "files": made.files, "uncovered": made.uncovered}
        held.records.note("checkpoint_created", facts, key=made.id)
        tidy_after_deed(held)
        return made


def checkpoints(workbench: Workbench, *, of_drafts: bool = False) -> tuple[Checkpoint, ...]:
    """The checkpoints of the project, the newest first; those of its drafts, too, if asked for."""
    if not workbench.is_used:
        return ()
    with workbench.held() as (held, _):
        every = held.store.checkpoints()
    return tuple(each for each in every if of_drafts or each.origin == PUBLISHED)


def show(workbench: Workbench, id: str) -> ShownCheckpoint:
    """A checkpoint, by its id or the beginning of just one."""
    with workbench.held() as (held, _):
        found = find_checkpoint(held.store, id)
        return ShownCheckpoint(checkpoint=found, uncovered=held.store.uncovered(found))


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
    with workbench.held() as (held, _):
        one, other = (
            held.look() if id == NOW else find_checkpoint(held.store, id) for id in (before, after)
        )
        every = held.store.changes(one, other)
        changes = [each for each in every if is_chosen(each.path, only)]
        if patch is not None:
            write_patch(held.store, changes, patch)
        return file_diffs(held.store, changes)


def recover(workbench: Workbench) -> tuple[Recovered, ...]:
    """Finish or undo what was interrupted, as holding the workbench does by itself; say which."""
    if not workbench.is_used:
        return ()
    with workbench.held() as (_, recovered):
        return recovered


def storage_use(workbench: Workbench) -> Usage:
    """How much room is taken by what is kept of the project."""
    with workbench.held() as (held, _):
        return usage(held.store)


def tidy(
    workbench: Workbench,
    *,
    quota_bytes: int | None = None,
    with_manual: bool = False,
    is_trial: bool = False,
) -> Pruned:
    """Remove old checkpoints, but none that a draft builds on; a trial only says which.

    Those that a person made by hand go only `with_manual`.
    """
    with workbench.held() as (held, _):
        pruned = prune(
            held.store,
            quota_bytes=quota_bytes,
            in_use=held.in_use(),
            with_manual=with_manual,
            is_trial=is_trial,
            news=held.bench.news,
        )
        if not is_trial:
            facts = {
                "checkpoints": len(pruned.checkpoints),
                "bytes_before": pruned.bytes_before,
                "bytes_after": pruned.bytes_after,
            }
            held.records.note("pruned", facts)
        return pruned


def tidy_after_deed(held: Held, keep_min: int = KEEP_MIN) -> None:
    """Let old checkpoints go if there are too many; who does much in one hold asks only at times.

    What comes with a few deeds more is far less than what may stay anyway.
    """
    if next(held.deeds) % _DEEDS_BETWEEN == 0:
        let_surplus_go(held, keep_min)


def let_surplus_go(held: Held, keep_min: int = KEEP_MIN, quota_bytes: int | None = None) -> None:
    """Let old checkpoints go by themselves once there are many more than enough, or too large.

    As much goes as makes room for a while. What then is still too large stays so: it is not tried
    again before more has come. It is only tidying: that it fails is no reason to say that what was
    done before it did.
    """
    with suppress(Failure, OSError):
        use = load(held.store)
        quota = use.quota_bytes if quota_bytes is None else quota_bytes
        many = keep_min + keep_min // _SLACK_SHARE
        is_over = use.kept_bytes > quota and use.kept_bytes > _stayed_and_more(held)
        if use.checkpoints <= many and not is_over:
            return  # the drafts need not be asked
        in_use = held.in_use()
        if use.checkpoints - len(in_use) > many or is_over:
            pruned = prune(
                held.store,
                quota_bytes=quota - quota // _SLACK_SHARE,
                keep_min=keep_min + len(in_use),
                in_use=in_use,
            )
            _stayed(held).write_text(f"{pruned.bytes_after}", encoding="ascii")


def _stayed(held: Held) -> Path:
    """Where it is written down how much stayed when it was last tidied; nothing depends on it."""
    return held.bench.directory / "stayed"


def _stayed_and_more(held: Held) -> int:
    try:
        stayed = int(_stayed(held).read_text("ascii"))
    except (OSError, ValueError):
        return 0
    return stayed + stayed // _SLACK_SHARE


def kept_before(held: Held, theirs: Checkpoint, occasion: Occasion, message: str) -> Checkpoint:
    """A checkpoint of the project as it was just seen, without which nothing is done to it."""
    try:
        return held.store.record_checkpoint(theirs, occasion, message)
    except Failure as failure:
        raise CheckpointCreateFailed(path=str(held.bench.project), reason=str(failure)) from failure
