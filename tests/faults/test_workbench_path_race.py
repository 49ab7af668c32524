"""Someone swaps directories for links while a workbench looks at and changes what is below."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.nouns import RelativePath
from holdfast.workbench.failures import ObjectMissing
from holdfast.workbench.model import STAGE_PREFIX, EntryKind, PathChange, PathEntry
from holdfast.workbench.objects.formats import ObjectKind, name_of
from holdfast.workbench.store.store import CheckpointSource, Store
from holdfast.workbench.transaction.executor import Executor
from holdfast.workbench.transaction.machine import (
    Apply,
    InspectPath,
    InspectSlot,
    MakeStage,
    Marker,
    PathAction,
    PathOperation,
    Purpose,
    StageEntry,
    TransactionState,
    Verb,
)
from holdfast.workbench.transaction.site import TransactionSite
from holdfast.workbench.transaction.transaction import execute, recover
from holdfast.world import SystemDisk
from tests.faults.swapping import INSIDE, SECRET, lay_traps, swapping, traps

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names needs renameat2"),
    pytest.mark.promise("W10"),
]

NEW = b"new"
PATH = RelativePath.of("a/b/file")


def named(data: bytes) -> bytes:
    return name_of(ObjectKind.BLOB, data)


def entry(data: bytes) -> PathEntry:
    return PathEntry(EntryKind.FILE, 0o644, content=named(data), size=len(data))


SWAP = PathOperation(Verb.SWAP, PATH, entry(INSIDE), entry(NEW), 0)


@contextmanager
def sited(place: Path) -> Generator[tuple[Store, TransactionSite]]:
    """The root as a site, and a store that has the new content."""
    root = os.open(place / "root", os.O_RDONLY | os.O_DIRECTORY)
    try:
        with Store.open(place / "state") as store:
            store.put_content([NEW])
            marker = place / "state" / "marker.json"
            yield store, TransactionSite(root, "root", f"{STAGE_PREFIX}x", marker, SystemDisk())
    finally:
        os.close(root)


def outside(place: Path) -> dict[str, tuple[bytes, int, int]]:
    """All that is outside, and whether it is still the same."""
    return {
        str(path.relative_to(place)): (path.read_bytes(), path.stat().st_ino, path.stat().st_mode)
        for path in (place / "outside").rglob("*")
        if path.is_file()
    }


def operation_numbers(place: Path, where: str, tries: int) -> Counter[str]:
    """How often a step by itself met what is inside, what is outside, or was refused."""
    seen: Counter[str] = Counter()
    with sited(place) as (store, site):
        marker = Marker("key", TransactionState.PREPARED, (SWAP,))
        with Executor(site, store, marker, lambda _: None) as hand:
            hand.execute(MakeStage())
            hand.execute(StageEntry(SWAP))
            with swapping(*traps(place, where)):
                for _ in range(tries // 2):
                    seen[_met(hand.execute(InspectPath(SWAP)))] += 1
                    seen[str(hand.execute(Apply(PathAction.EXCHANGE, SWAP)))] += 1
                    seen[f"slot {_met(hand.execute(InspectSlot(SWAP)))}"] += 1
    return seen


def _met(found: object) -> str:
    if not isinstance(found, PathEntry):
        return "nothing"
    if found.kind is not EntryKind.FILE:
        return found.kind
    names = {named(INSIDE): "inside", named(NEW): "new", named(SECRET): "outside"}
    return names[found.content]


def race(place: Path, where: str, tries: int) -> None:
    before = outside(place)
    seen = operation_numbers(place, where, tries)

    assert seen["outside"] == seen["slot outside"] == 0, seen
    assert outside(place) == before
    if where == "parent":
        assert min(seen["True"], seen["False"]) > tries // 100, f"hardly a race: {seen}"
    else:
        assert min(seen["link"], seen["inside"] + seen["new"]) > 0, f"hardly a race: {seen}"


@pytest.mark.parametrize("where", ["parent", "last"])
def test_no_step_leads_outside(where: str, tmp_path: Path) -> None:
    race(lay_traps(tmp_path), where, 10_000)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("where", ["parent", "last"])
def test_no_step_ever_leads_outside(where: str, tmp_path: Path) -> None:
    race(lay_traps(tmp_path), where, 100_000)


@pytest.mark.parametrize("where", ["parent", "last"])
def test_no_transaction_and_no_checkpoint_leads_outside(where: str, tmp_path: Path) -> None:
    place = lay_traps(tmp_path)
    before = outside(place)
    ways: Counter[str] = Counter()
    change = {True: PathChange(PATH, entry(INSIDE), entry(NEW))}
    change[False] = PathChange(PATH, entry(NEW), entry(INSIDE))
    with sited(place) as (store, site), swapping(*traps(place, where)):
        store.put_content([INSIDE])
        for number in range(60):
            store.checkpoint(CheckpointSource(place / "root"))
            done = execute(
                site,
                store,
                [change[number % 2 == 0]],
                purpose=Purpose(f"{number}"),
                record_outcome=lambda _: None,
            )
            ways[done.result] += 1
            recover(site, store, record_outcome=lambda _: None)
        with pytest.raises(ObjectMissing):
            list(store.content(named(SECRET)))

    assert outside(place) == before
    assert not [name for name in os.listdir(place / "root") if name.startswith(STAGE_PREFIX)]
    assert ways["undone"] > 0, ways
