"""Checkpoints as a person handles them."""

from __future__ import annotations

import os
import random
from itertools import pairwise

import pytest

from holdfast.workbench import (
    NOW,
    PublishOrder,
    Workbench,
    checkpoint,
    checkpoints,
    compare,
    list_drafts,
    prune_checkpoints,
    publish,
    recover,
    review,
    show,
    storage_use,
)
from holdfast.workbench.failures import CheckpointCreateFailed, CheckpointMissing
from holdfast.workbench.model import Occasion, UncoveredReason
from holdfast.workbench.operations.checkpoints import (
    checkpoint_before,
    prune_after_operation,
    prune_surplus,
)
from holdfast.workbench.store.pruning import usage
from tests.workbench.benches import Bench, at


def test_one_is_made_listed_and_shown(layered: Bench) -> None:
    os.mkfifo(layered.project / "pipe")

    made = checkpoint(layered.workbench, "by hand")

    assert (made.occasion, made.message, made.files) == (Occasion.MANUAL, "by hand", 3)
    assert checkpoints(layered.workbench) == (made,)
    shown = show(layered.workbench, made.id)
    assert shown.checkpoint == made
    assert [(str(one.path), one.reason) for one in shown.uncovered] == [
        ("pipe", UncoveredReason.SPECIAL)
    ]


def test_two_are_compared_or_one_with_the_project_as_it_is(layered: Bench) -> None:
    first = checkpoint(layered.workbench)
    (layered.project / "a").write_bytes(b"new\n")
    second = checkpoint(layered.workbench)
    (layered.project / "c").write_bytes(b"newer\n")

    (one,) = compare(layered.workbench, first.id, second.id)
    assert (str(one.path), one.added, one.removed) == ("a", 1, 9)
    assert [str(each.path) for each in compare(layered.workbench, first.id, NOW)] == ["a", "c"]
    assert compare(layered.workbench, first.id, paths=[at("d")]) == ()
    with pytest.raises(CheckpointMissing):
        compare(layered.workbench, "nothing")


def test_what_drafts_are_counted_from_is_no_state_of_the_project(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a; echo ours > c")
    (bench.project / "a").write_bytes(b"theirs\n")
    review(bench.workbench)
    order = PublishOrder(sealed=review(bench.workbench).seal, only=(at("c"),))
    publish(bench.workbench, order)

    (draft,) = list_drafts(bench.workbench)
    assert draft.base not in {each.id for each in checkpoints(bench.workbench)}
    assert draft.base in {each.id for each in checkpoints(bench.workbench, of_drafts=True)}


@pytest.mark.promise("W11")
def test_tidying_never_removes_what_a_draft_needs(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > a")
    bench.run("echo more > a")
    for count in range(5):
        (bench.project / "c").write_bytes(b"%d" % count)
        checkpoint(bench.workbench, occasion=Occasion.AUTO)

    trial = prune_checkpoints(bench.workbench, quota_bytes=1, is_trial=True)
    before = storage_use(bench.workbench)
    pruned = prune_checkpoints(bench.workbench, quota_bytes=1)

    assert pruned.checkpoints == trial.checkpoints
    assert len(pruned.checkpoints) >= 4
    assert storage_use(bench.workbench).checkpoints < before.checkpoints
    assert [str(each.path) for each in review(bench.workbench).files] == ["a"]
    assert bench.run("cat a") == "more\n"


@pytest.mark.promise("W11")
def test_what_is_much_more_than_enough_goes_by_itself(layered: Bench) -> None:
    layered.draft()
    layered.run("echo ours > a")
    made = [checkpoint(layered.workbench, occasion=Occasion.AUTO) for _ in range(12)]
    with layered.workbench.locked() as (handle, _):
        prune_surplus(handle, keep_min=20)
        assert {each.id for each in made} <= {each.id for each in handle.store.checkpoints()}
        prune_surplus(handle, keep_min=5)
        left = {each.id for each in handle.store.checkpoints()}

        assert handle.in_use() <= left
        assert [each.id in left for each in made] == [False] * 7 + [True] * 5


def test_what_is_above_the_quota_goes_by_itself(layered: Bench) -> None:
    made = []
    for number in range(6):
        (layered.project / "large").write_bytes(random.Random(number).randbytes(200_000))
        made.append(checkpoint(layered.workbench, occasion=Occasion.AUTO))
    with layered.workbench.locked() as (handle, _):
        prune_surplus(handle, quota_bytes=10_000_000)
        assert len(handle.store.checkpoints()) >= 6
        prune_surplus(handle, quota_bytes=500_000)
        left = {each.id for each in handle.store.checkpoints()}

        assert usage(handle.store).kept_bytes < 700_000
        assert [each.id in left for each in made][-1]
        assert not any(each.id in left for each in made[:3])


def grow(bench: Bench, workbench: Workbench, number: int) -> None:
    (bench.project / "large").write_bytes(random.Random(number).randbytes(200_000))
    checkpoint(workbench, occasion=Occasion.AUTO)


def test_a_full_store_is_not_tidied_by_each_checkpoint(layered: Bench) -> None:
    sizes = list[int]()
    with layered.workbench.kept_open() as workbench, workbench.locked() as (handle, _):
        for number in range(20):
            grow(layered, workbench, number)
            prune_surplus(handle, quota_bytes=2_000_000)
            sizes.append(usage(handle.store).kept_bytes)

    assert max(sizes) <= 2_000_000
    assert sum(after < before for before, after in pairwise(sizes)) == 4


def test_what_cannot_go_is_not_tidied_in_vain(layered: Bench) -> None:
    with layered.workbench.kept_open() as workbench, workbench.locked() as (handle, _):
        noted = workbench.directory / "stayed"
        grow(layered, workbench, 1)
        prune_surplus(handle, quota_bytes=1000)
        tidied = noted.stat().st_mtime_ns
        prune_surplus(handle, quota_bytes=1000)
        assert noted.stat().st_mtime_ns == tidied
        grow(layered, workbench, 2)
        prune_surplus(handle, quota_bytes=1000)

        assert noted.stat().st_mtime_ns > tidied
        assert usage(handle.store).kept_bytes < 300_000


@pytest.mark.promise("W3")
def test_without_the_checkpoint_before_it_nothing_is_done(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        seen = handle.look()
        handle.store.object_store.segments.close()
        (layered.workbench.directory / "seg").rename(layered.base / "elsewhere")

        with pytest.raises(CheckpointCreateFailed):
            checkpoint_before(handle, seen, Occasion.PUBLISH, "")


def test_there_is_nothing_to_recover(layered: Bench) -> None:
    assert recover(layered.workbench) == ()


def test_who_does_much_in_one_hold_tidies_only_at_times(layered: Bench) -> None:
    for _ in range(12):
        checkpoint(layered.workbench, occasion=Occasion.AUTO)
    with layered.workbench.locked() as (handle, _):
        left = list[int]()
        for _ in range(9):
            prune_after_operation(handle, keep_min=20 if not left else 5)
            left.append(len(handle.store.checkpoints()))

    assert left == [12] * 8 + [5]
