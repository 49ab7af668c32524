"""What can be done to a store, and to a directory in one transaction."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from holdfast.workbench.model import STAGE_PREFIX
from holdfast.workbench.store.store import CheckpointSource, Store
from holdfast.workbench.transaction.machine import Purpose, TransactionOutcome
from holdfast.workbench.transaction.site import TransactionSite
from holdfast.workbench.transaction.transaction import execute, recover
from holdfast.world import SystemDisk, disk_failure
from tests.faults.workbench_scene import Home, Scene
from tests.faults.workbench_sights import (
    Kept,
    Views,
    edit_project,
    make_project,
    missing_from,
)
from tests.workbench.benches import sight


def _lay_out_store(home: Home) -> Kept:
    make_project(home.project)
    with Store.open(home.state) as store:
        made = store.checkpoint(CheckpointSource(home.project))
    kept = {str(made.id): sight(home.project)}
    edit_project(home.project)
    return kept


def _lay_out_nothing(home: Home) -> Kept:
    make_project(home.project)
    return {}


def _lay_out_lost_index(home: Home) -> Kept:
    kept = _lay_out_store(home)
    with Store.open(home.state) as store:
        made = store.checkpoint(CheckpointSource(home.project))
    kept[str(made.id)] = sight(home.project)
    (home.state / "wb.db").write_bytes(b"no database")
    return kept


def _checkpoint(home: Home) -> dict[str, str]:
    with Store.open(home.state) as store:
        return {str(store.checkpoint(CheckpointSource(home.project)).id): "project"}


def _open(home: Home) -> dict[str, str]:
    with Store.open(home.state):
        return {}


def _reopen(home: Home) -> list[str]:
    with Store.open(home.state):
        return []


def _project(home: Home) -> Views:
    return {"project": sight(home.project)}


def _read_back(home: Home, kept: Kept) -> list[str]:
    with Store.open(home.state) as store:
        return missing_from(store, kept)


# A transaction by itself: the project becomes what is kept of another directory.


@contextmanager
def _site(home: Home) -> Generator[tuple[Store, TransactionSite]]:
    try:
        root = os.open(home.project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise disk_failure(error, path=str(home.project)) from error
    try:
        with Store.open(home.state) as store:
            marker = home.state / "marker.json"
            yield store, TransactionSite(root, "project", f"{STAGE_PREFIX}x", marker, SystemDisk())
    finally:
        os.close(root)


def _lay_out_two(home: Home) -> Kept:
    make_project(home.project)
    make_project(home.root / "other")
    edit_project(home.root / "other")
    with Store.open(home.state) as store:
        one = store.checkpoint(CheckpointSource(home.project))
        other = store.checkpoint(CheckpointSource(home.root / "other", "other"))
    return {str(one.id): sight(home.project), str(other.id): sight(home.root / "other")}


def _tell(_: TransactionOutcome) -> None:
    pass


def _carry_out(home: Home) -> dict[str, str]:
    with _site(home) as (store, site):
        other, one = store.checkpoints()
        outcome = execute(
            site, store, store.changes(one, other), purpose=Purpose("key"), record_outcome=_tell
        )
        assert outcome.result == "finished", outcome
        return {}


def _recover(home: Home) -> list[str]:
    with _site(home) as (store, site):
        outcome = recover(site, store, record_outcome=_tell)
        return [] if outcome is None else [outcome.result]


STORE_SCENES: dict[str, Scene] = {
    "store, first checkpoint": Scene(_lay_out_nothing, _checkpoint, _reopen, _project, _read_back),
    "store, checkpoint": Scene(_lay_out_store, _checkpoint, _reopen, _project, _read_back),
    "store, rebuild": Scene(_lay_out_lost_index, _open, _reopen, _project, _read_back),
    "transaction": Scene(_lay_out_two, _carry_out, _recover, _project, _read_back),
}
