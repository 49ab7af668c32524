"""A marker is put, committed and removed, and says at any time how far a transaction has come."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.workbench.failures import MarkerDamaged
from holdfast.workbench.transaction.machine import Marker, TransactionState
from holdfast.workbench.transaction.site import (
    TransactionSite,
    commit_marker,
    committed_name,
    put_marker,
    read_marker,
    remove_marker,
    set_aside,
)
from holdfast.world import SystemDisk
from holdfast.world.failures import DiskUnusable

PREPARED = Marker("key", TransactionState.PREPARED, (), {"deed": "restore", "paths": ["a"]})
COMMITTED = replace(PREPARED, state=TransactionState.COMMITTED)


@pytest.fixture
def site(tmp_path: Path) -> TransactionSite:
    return TransactionSite(-1, "project", "stage", tmp_path / "marker.json", SystemDisk())


def names(site: TransactionSite) -> list[str]:
    return sorted(path.name for path in site.marker.parent.iterdir())


def test_it_is_there_until_it_is_not(site: TransactionSite) -> None:
    assert read_marker(site) is None
    put_marker(site, PREPARED)
    assert (read_marker(site), names(site)) == (PREPARED, ["marker.json"])
    for _ in range(2):  # whoever finds it committed cannot know how durably it is
        commit_marker(site)
        assert (read_marker(site), names(site)) == (COMMITTED, ["marker.committed.json"])
    for _ in range(2):
        remove_marker(site, is_committed=True)
        assert (read_marker(site), names(site)) == (None, [])


def test_one_that_is_undone_keeps_its_name(site: TransactionSite) -> None:
    put_marker(site, PREPARED)
    put_marker(site, replace(PREPARED, state=TransactionState.UNDONE))
    found = read_marker(site)
    assert found is not None
    assert (found.state, names(site)) == (TransactionState.UNDONE, ["marker.json"])
    remove_marker(site, is_committed=False)
    assert names(site) == []


def test_what_was_begun_last_counts_and_takes_the_place_of_what_came_back(
    site: TransactionSite,
) -> None:
    put_marker(site, replace(PREPARED, key="before"))
    commit_marker(site)
    put_marker(site, PREPARED)
    assert read_marker(site) == PREPARED
    commit_marker(site)
    assert (read_marker(site), names(site)) == (COMMITTED, ["marker.committed.json"])


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_damaged_one_can_be_set_aside(site: TransactionSite, is_committed: bool) -> None:
    put_marker(site, PREPARED)
    if is_committed:
        commit_marker(site)
    site.markers[is_committed].write_bytes(b"{}")
    with pytest.raises(MarkerDamaged):
        read_marker(site)

    set_aside(site)

    assert read_marker(site) is None
    (name,) = names(site)
    assert name.startswith(f"{site.markers[is_committed].name}.damaged-")


def test_the_second_name_is_beside_the_first() -> None:
    assert committed_name(Path("/s/marker.json")) == Path("/s/marker.committed.json")


def test_one_that_nobody_can_ask_for_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert (
        read_marker(TransactionSite(-1, "p", "s", tmp_path / "file" / "marker", SystemDisk()))
        is None
    )
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(DiskUnusable):
        read_marker(TransactionSite(-1, "p", "s", tmp_path / "round" / "marker", SystemDisk()))
