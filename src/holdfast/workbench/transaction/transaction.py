"""Change many paths of a directory atomically.

`execute` applies all changes or none; `recover` finishes or undoes what a dead process left.
Callers hold the lock of the project. Entries are compared by content, with
`path_state.inspect_path`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from holdfast.failures import Failure
from holdfast.workbench.failures import MarkerDamaged, TransactionUnsettled
from holdfast.workbench.model import PathChange, ProgressCallback, ignore_progress
from holdfast.workbench.store.store import Store
from holdfast.workbench.transaction import machine as publication
from holdfast.workbench.transaction.atomic_rename import ExchangeMissing
from holdfast.workbench.transaction.executor import Executor, rescue
from holdfast.workbench.transaction.machine import (
    Marker,
    Purpose,
    StepGenerator,
    TransactionOutcome,
    TransactionResult,
    TransactionState,
    plan_operations,
)
from holdfast.workbench.transaction.site import TransactionSite, read_marker, set_aside
from holdfast.workbench.transaction.stage import StageDirectory
from holdfast.world import disk_failure, remove_leftovers
from holdfast.world.failures import DiskFull, DiskQuota

OutcomeRecorder = Callable[[TransactionOutcome], None]
"""Records an outcome durably; may be called again with the same key after a kill."""

_FULL: Final = (DiskFull, DiskQuota)


def execute(
    site: TransactionSite,
    store: Store,
    changes: Iterable[PathChange],
    *,
    purpose: Purpose,
    record_outcome: OutcomeRecorder,
    on_progress: ProgressCallback = ignore_progress,
) -> TransactionOutcome:
    """Apply all changes, or none if a path is not as expected.

    Durable on return. When it raises nothing has changed, except for TransactionUnsettled, after
    which `recover` must run. Conflicts found before the first operation are not recorded.
    """
    recover(site, store, record_outcome=record_outcome)
    changes = tuple(changes)
    for can_exchange in (True, False):
        operations = plan_operations(changes, can_exchange=can_exchange)
        marker = Marker(purpose.key, TransactionState.PREPARED, operations, purpose.facts)
        try:
            return _attempted(site, store, marker, record_outcome, on_progress)
        except ExchangeMissing:
            # Raised before the first operation.
            continue
    raise AssertionError("no operation of the second plan needs an exchange")


def recover(
    site: TransactionSite,
    store: Store,
    *,
    record_outcome: OutcomeRecorder,
    on_progress: ProgressCallback = ignore_progress,
) -> TransactionOutcome | None:
    """Finish or undo an interrupted transaction; None if there is none.

    Costs three system calls if there is none, and can be repeated when it raises. A damaged marker
    is renamed, the contents of the stage are stored, and MarkerDamaged is raised once.
    """
    marker = _read_or_set_aside(site, store)
    if marker is None and not _has_stage(site):
        return None
    remove_leftovers(site.disk, site.marker)
    try:
        outcome = _reconciled(site, store, marker, record_outcome, on_progress)
    except _FULL:
        site.release_reserve()
        outcome = _reconciled(site, store, read_marker(site), record_outcome, on_progress)
    # A stage without a marker: killed while staging, before any path was changed.
    return (
        TransactionOutcome(TransactionResult.UNDONE)
        if outcome.result is TransactionResult.NOTHING
        else outcome
    )


def drive(run: StepGenerator, executor: Executor) -> TransactionOutcome:
    """Execute the steps of a generator and return its outcome."""
    try:
        step = next(run)
        while True:
            step = run.send(executor.execute(step))
    except StopIteration as end:
        outcome = end.value
        assert isinstance(outcome, TransactionOutcome)
        return outcome
    finally:
        run.close()


def _attempted(
    site: TransactionSite,
    store: Store,
    marker: Marker,
    record_outcome: OutcomeRecorder,
    on_progress: ProgressCallback,
) -> TransactionOutcome:
    with Executor(site, store, marker, record_outcome, on_progress) as executor:
        try:
            return drive(publication.publish(marker.operations, marker.key), executor)
        except Failure as failure:
            ended_by = failure
    if isinstance(ended_by, _FULL):
        site.release_reserve()
    finished = TransactionOutcome(TransactionResult.FINISHED, marker.key)
    try:
        outcome = recover(site, store, record_outcome=record_outcome, on_progress=on_progress)
    except Failure as failure:
        if executor.marked is TransactionState.COMMITTED:
            return replace(finished, is_tidy=False)
        if executor.marked is TransactionState.PREPARED:
            reason = str(failure)
            raise TransactionUnsettled(path=site.name, reason=reason) from ended_by
        # Nothing was changed, or all was undone; only cleanup is left.
        raise ended_by from None
    if executor.marked is TransactionState.COMMITTED or (
        outcome and outcome.result is TransactionResult.FINISHED
    ):
        return outcome or finished
    raise ended_by


def _reconciled(
    site: TransactionSite,
    store: Store,
    marker: Marker | None,
    record_outcome: OutcomeRecorder,
    on_progress: ProgressCallback,
) -> TransactionOutcome:
    nothing = Marker("", TransactionState.UNDONE, ())
    with Executor(site, store, marker or nothing, record_outcome, on_progress) as executor:
        return drive(publication.recover(marker), executor)


def _has_stage(site: TransactionSite) -> bool:
    try:
        return StageDirectory(site.root, site.stage).exists()
    except OSError as error:
        raise disk_failure(error, path=site.name) from error


def _read_or_set_aside(site: TransactionSite, store: Store) -> Marker | None:
    try:
        return read_marker(site)
    except MarkerDamaged:
        stage = StageDirectory(site.root, site.stage)
        try:
            for slot in stage.slots():
                rescue(store, slot, f"{site.name}/{site.stage}")
            set_aside(site)
            stage.drop()
        except OSError as error:
            raise disk_failure(error, path=site.name) from error
        finally:
            stage.close()
        raise
