"""Change many paths of a directory as a whole, whatever else happens there.

`carry_out` brings changes into effect, all or none; `recover` finishes or undoes what a dead
process left. Whoever calls them holds the lock of the project and its store. What is expected and
what is put there is compared by content, with `holdfast.workbench.transaction.path_state.look`.
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
from holdfast.workbench.transaction.executor import Hand, rescue
from holdfast.workbench.transaction.machine import (
    Marker,
    Outcome,
    Purpose,
    Run,
    State,
    Way,
    lay_out,
)
from holdfast.workbench.transaction.site import Site, read_marker, set_aside
from holdfast.workbench.transaction.stage import StageDirectory
from holdfast.world import disk_failure, remove_leftovers
from holdfast.world.failures import DiskFull, DiskQuota

Teller = Callable[[Outcome], None]
"""Writes an outcome down, durably; after a kill it may be told the same again, by its key."""

_FULL: Final = (DiskFull, DiskQuota)


def carry_out(
    site: Site,
    store: Store,
    changes: Iterable[PathChange],
    *,
    purpose: Purpose,
    tell: Teller,
    news: ProgressCallback = ignore_progress,
) -> Outcome:
    """Bring all changes into effect, or none if one of them does not find what it expects.

    Durable when it returns. When it raises nothing has changed, except TransactionUnsettled, after
    which `recover` must be called. Conflicts that were found before anything began are not told.
    """
    recover(site, store, tell=tell)
    changes = tuple(changes)
    for can_exchange in (True, False):
        operations = lay_out(changes, can_exchange=can_exchange)
        marker = Marker(purpose.key, State.PREPARED, operations, purpose.facts)
        try:
            return _attempted(site, store, marker, tell, news)
        except ExchangeMissing:  # and nothing has begun
            continue
    raise AssertionError("without exchanges none is missed")


def recover(
    site: Site, store: Store, *, tell: Teller, news: ProgressCallback = ignore_progress
) -> Outcome | None:
    """Finish or undo what somebody began here and did not end; None if there is nothing.

    Costs three system calls if there is nothing. When it raises, it can be called again. A marker
    that is damaged is set aside, with all that was on the stage in the store, and MarkerDamaged is
    raised once.
    """
    marker = _read_or_set_aside(site, store)
    if marker is None and not _has_stage(site):
        return None
    remove_leftovers(site.disk, site.marker)
    try:
        outcome = _reconciled(site, store, marker, tell, news)
    except _FULL:
        site.relieve()
        outcome = _reconciled(site, store, read_marker(site), tell, news)
    # A stage without a marker: killed while staging, so that no path of the person's was touched.
    return Outcome(Way.UNDONE) if outcome.way is Way.NOTHING else outcome


def follow(run: Run, hand: Hand) -> Outcome:
    """Carry out one act after the other, and say how it ended."""
    try:
        act = next(run)
        while True:
            act = run.send(hand.carry_out(act))
    except StopIteration as end:
        outcome = end.value
        assert isinstance(outcome, Outcome)
        return outcome
    finally:
        run.close()


def _attempted(
    site: Site, store: Store, marker: Marker, tell: Teller, news: ProgressCallback
) -> Outcome:
    with Hand(site, store, marker, tell, news) as hand:
        try:
            return follow(publication.publish(marker.operations, marker.key), hand)
        except Failure as failure:
            ended_by = failure
    if isinstance(ended_by, _FULL):
        site.relieve()
    finished = Outcome(Way.FINISHED, marker.key)
    try:
        outcome = recover(site, store, tell=tell, news=news)
    except Failure as failure:
        if hand.marked is State.COMMITTED:
            return replace(finished, is_tidy=False)
        if hand.marked is State.PREPARED:
            reason = str(failure)
            raise TransactionUnsettled(path=site.name, reason=reason) from ended_by
        raise ended_by from None  # nothing was begun, or all was undone: only tidying is left
    if hand.marked is State.COMMITTED or (outcome and outcome.way is Way.FINISHED):
        return outcome or finished
    raise ended_by


def _reconciled(
    site: Site, store: Store, marker: Marker | None, tell: Teller, news: ProgressCallback
) -> Outcome:
    nothing = Marker("", State.UNDONE, ())
    with Hand(site, store, marker or nothing, tell, news) as hand:
        return follow(publication.recover(marker), hand)


def _has_stage(site: Site) -> bool:
    try:
        return StageDirectory(site.root, site.stage).exists()
    except OSError as error:
        raise disk_failure(error, path=site.name) from error


def _read_or_set_aside(site: Site, store: Store) -> Marker | None:
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
