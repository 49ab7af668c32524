"""Spoil what a workbench has written: it is made anew, or the failure says what is lost."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.failures import Failure
from holdfast.workbench import RestoreOrder, Store, Workbench, checkpoint, recover, restore
from holdfast.workbench.failures import (
    CheckpointMissing,
    MarkerDamaged,
    ObjectDamaged,
    ObjectMissing,
)
from tests.faults.workbench_ground import Ground, laid_out, left_behind
from tests.faults.workbench_sights import Kept, kept_sight
from tests.faults.workbench_tracing import MISSING, killed_at
from tests.workbench.benches import sight

pytestmark = pytest.mark.promise("W8")
needs_strace = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

SEED = 8
NAMED = (ObjectDamaged, ObjectMissing, CheckpointMissing)


def bench(ground: Ground) -> Workbench:
    return Workbench.at(ground.home.project, ground.home.state)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]


def cut(data: bytes, at: int) -> bytes:
    return data[:at]


Spoiling = Callable[[bytes, int], bytes]


# The marker.


def killed_in_between(ground: Ground) -> Path:
    """Kill a publication when some of its files are in place; return its marker."""
    moves = [call for call in ground.calls if call.name == "renameat2"]
    assert ground.run(killed_at(moves[4])).was_harmed
    marker = bench(ground).directory / "marker.json"
    assert marker.exists()
    ground.keep("killed")
    return marker


def after_a_spoiled_marker(ground: Ground, marker: Path, data: bytes) -> list[str]:
    """What is wrong when a marker reads like this in the middle of a publication."""
    ground.bring("killed")
    marker.write_bytes(data)
    try:
        recover(bench(ground))
    except MarkerDamaged:
        pass
    else:
        return ["nobody noticed"]
    wrong = [f"it is found again: {found}" for found in recover(bench(ground))]
    before, after = ground.before["project"], ground.after["project"]
    found = sight(ground.home.project)
    blends = [path for path, now in found.items() if now not in (before.get(path), after.get(path))]
    wrong += [f"{path!r} is neither old nor new" for path in blends]
    oldest = sorted(ground.kept)[0]
    restore(bench(ground), RestoreOrder(checkpoint=oldest))
    if sight(ground.home.project) != before:
        wrong.append("the checkpoint before does not bring the project back")
    return wrong + left_behind(ground.home)


def spoil_marker(spoil: Spoiling, chosen: Callable[[int], Iterator[int]]) -> dict[int, list[str]]:
    with laid_out("publish") as ground:
        marker = killed_in_between(ground)
        data = marker.read_bytes()
        found = {
            at: after_a_spoiled_marker(ground, marker, spoil(data, at)) for at in chosen(len(data))
        }
    return {at: wrong for at, wrong in found.items() if wrong}


def some(size: int) -> Iterator[int]:
    return iter([0, *random.Random(SEED).sample(range(1, size - 1), 10), size - 1])


@needs_strace
@pytest.mark.parametrize("spoil", [flipped, cut])
def test_a_marker_that_is_spoiled_is_seen_and_set_aside(spoil: Spoiling) -> None:
    assert spoil_marker(spoil, some) == {}


@needs_strace
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("spoil", [flipped, cut])
def test_a_marker_spoiled_anywhere_is_seen_and_set_aside(spoil: Spoiling) -> None:
    assert spoil_marker(spoil, lambda size: iter(range(size))) == {}


# What is kept.


def unread(ground: Ground, kept: Kept) -> list[str]:
    """What cannot be read back, by the failure that says so; other bytes are never given out."""
    found: list[str] = []
    with bench(ground).locked() as (handle, _):
        for id, expected in kept.items():
            try:
                read = kept_sight(handle.store, handle.store.find(id), list(expected))
            except NAMED as failure:
                found.append(failure.code)
            else:
                assert read == expected, "other bytes were given out"
    return found


def after_a_spoiled_file(ground: Ground, path: Path, data: bytes) -> list[str]:
    """What is wrong when a file of ours reads like this; the project is as it was."""
    ground.bring("template")
    path.write_bytes(data)
    try:
        unread(ground, ground.kept)
        made = checkpoint(bench(ground))
        new = {str(made.id): sight(ground.home.project)}
        wrong = unread(ground, new)
        if path.name == "wb.db":  # nothing is lost, and nobody need take it away
            wrong += unread(ground, ground.kept)
    except Failure as failure:
        return [f"nobody can go on: {failure.code} {failure}"]
    return [f"a new checkpoint does not mend it: {code}" for code in wrong]


def spoil_kept(name: str, spoil: Spoiling, count: int) -> dict[int, list[str]]:
    with laid_out("batch") as ground:
        ground.bring("template")
        path = bench(ground).directory / name
        data = path.read_bytes()
        chosen = random.Random(SEED).sample(range(len(data)), min(count, len(data)))
        found = {at: after_a_spoiled_file(ground, path, spoil(data, at)) for at in chosen}
    return {at: wrong for at, wrong in found.items() if wrong}


KEPT = ["wb.db", "seg/000001.seg"]


@needs_strace
@pytest.mark.parametrize("spoil", [flipped, cut])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_spoiled_is_named_and_the_rest_is_kept(name: str, spoil: Spoiling) -> None:
    assert spoil_kept(name, spoil, 12) == {}


@needs_strace
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("spoil", [flipped, cut])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_spoiled_anywhere_is_named(name: str, spoil: Spoiling) -> None:
    assert spoil_kept(name, spoil, 1000) == {}


@needs_strace
def test_all_that_an_index_knew_is_found_again() -> None:
    with laid_out("batch") as ground:
        for spoil in (flipped, cut):
            ground.bring("template")
            index = bench(ground).directory / "wb.db"
            index.write_bytes(spoil(index.read_bytes(), 20))
            assert unread(ground, ground.kept) == []
            with Store.open(bench(ground).directory) as store:
                assert {str(made.id) for made in store.checkpoints()} >= set(ground.kept)
