"""A draft with changes is what a command is about; one without is in no list, and goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.confine import find
from holdfast.workbench import (
    Conflict,
    PublishOrder,
    changed_drafts,
    discard,
    discard_unchanged,
    enter_draft,
    list_drafts,
    open_draft,
    preview,
    publish,
    reopen_draft,
    review,
    status,
)
from holdfast.workbench.diff.three_way import ConflictReason
from holdfast.workbench.failures import DraftAmbiguous, FileReadFailed
from holdfast.workbench.model import DraftMode
from tests.faults.mounts import missing_for_mounts, mounted
from tests.workbench.benches import Bench, at


def listed(bench: Bench) -> list[str]:
    return [each.id for each in changed_drafts(bench.workbench)]


@pytest.mark.promise("W13")
def test_the_draft_with_changes_is_meant_and_not_a_newer_one_without(bench: Bench) -> None:
    first, second = bench.draft(), bench.draft()
    bench.run("echo new > a", first)
    bench.run("cat a", second)

    assert review(bench.workbench).draft.id == first
    assert listed(bench) == [each.draft.id for each in status(bench.workbench).drafts] == [first]
    done = publish(bench.workbench, PublishOrder())
    assert (done.draft, done.count) == (first, 1)
    assert listed(bench) == []


@pytest.mark.promise("W13")
def test_of_several_with_changes_one_must_be_named(bench: Bench) -> None:
    first, second = bench.draft(), bench.draft()
    bench.run("echo 1 > a", first)
    bench.run("echo 2 > a", second)

    with pytest.raises(DraftAmbiguous) as ambiguous:
        publish(bench.workbench, PublishOrder())

    assert ambiguous.value.drafts == (second, first)
    assert publish(bench.workbench, PublishOrder(draft=first)).count == 1


@pytest.mark.promise("W13")
def test_a_draft_with_what_publish_leaves_out_is_meant_only_if_no_other_has_changes(
    bench: Bench,
) -> None:
    (bench.project / ".gitignore").write_text("cache\n")
    ignored, committed = bench.draft(), bench.draft()
    bench.run("echo 1 > a; mkdir cache; echo 1 > cache/x", ignored)
    publish(bench.workbench, PublishOrder(draft=ignored))
    assert review(bench.workbench).draft.id == ignored
    bench.run("mkdir -p .git/refs; echo 1 > .git/refs/made", committed)
    changed = bench.draft()
    bench.run("echo 2 > a", changed)

    assert listed(bench) == [ignored, committed, changed]
    assert review(bench.workbench).draft.id == changed
    for whole in (PublishOrder(with_ignored=True), PublishOrder(with_git=True)):
        with pytest.raises(DraftAmbiguous):
            preview(bench.workbench, whole)
    with pytest.raises(DraftAmbiguous):
        discard(bench.workbench)
    assert publish(bench.workbench, PublishOrder()).draft == changed
    with pytest.raises(DraftAmbiguous) as ambiguous:
        review(bench.workbench)
    assert ambiguous.value.drafts == (committed, ignored)


@pytest.mark.promise("W1")
def test_a_draft_with_something_that_cannot_be_kept_stays(bench: Bench) -> None:
    os.mkfifo(bench.project / "theirs")
    empty, odd = bench.draft(), bench.draft()
    bench.run("cat a", empty)
    bench.run("mkfifo pipe", odd)

    assert not discard_unchanged(bench.workbench, odd)
    assert discard_unchanged(bench.workbench, empty)
    assert listed(bench) == [odd]


@pytest.mark.promise("W1")
@pytest.mark.skipif(missing_for_mounts() is not None, reason=str(missing_for_mounts()))
def test_changes_under_a_mount_that_came_later_are_told_and_stay(layered: Bench) -> None:
    elsewhere = layered.base / "elsewhere"
    elsewhere.mkdir()
    draft = layered.draft()
    layered.run("echo new > d/b; echo new > d/made", draft)
    with mounted(layered.project / "d", "--bind", str(elsewhere)):
        found = review(layered.workbench, draft)
        assert found.conflicts == (Conflict(path=at("d"), reason=ConflictReason.NOT_COVERED),)
        assert listed(layered) == [draft]
        assert not discard_unchanged(layered.workbench, draft)
        with pytest.raises(FileReadFailed):
            publish(layered.workbench, PublishOrder(draft=draft))
        assert os.listdir(elsewhere) == []

    assert publish(layered.workbench, PublishOrder(draft=draft)).count == 2


@pytest.mark.promise("W13")
def test_what_only_git_notes_for_itself_is_no_change(bench: Bench) -> None:
    draft = bench.draft()
    bench.run("echo index > .git/index", draft)
    assert listed(bench) == []
    bench.run("mkdir .git/refs; echo 1 > .git/refs/made", draft)
    assert listed(bench) == [draft]


@pytest.mark.promise("W13")
def test_a_draft_without_changes_goes_and_comes_back_for_its_session(bench: Bench) -> None:
    empty, full = bench.draft(), bench.draft()
    bench.run("echo 1 > x", full)

    assert not discard_unchanged(bench.workbench, full)
    with enter_draft(bench.workbench, empty):
        assert not discard_unchanged(bench.workbench, empty)  # something is about to enter it
    assert discard_unchanged(bench.workbench, empty)

    assert [each.id for each in list_drafts(bench.workbench)] == [full]
    assert discard_unchanged(bench.workbench, empty)  # as often as one likes
    assert reopen_draft(bench.workbench, empty).id == empty
    assert bench.run("cat a", empty)
    assert reopen_draft(bench.workbench, full).revisions


@pytest.mark.promise("W1")
def test_a_draft_in_which_something_runs_stays(layered: Bench) -> None:
    draft = layered.draft()
    layered.run("sleep 1000 >/dev/null 2>&1 &", draft)
    assert not discard_unchanged(layered.workbench, draft)


@pytest.mark.promise("W13")
def test_a_draft_without_changes_costs_its_record_alone(layered: Bench) -> None:
    empty, full = layered.draft(), layered.draft()
    layered.run("echo 1 > x", full)

    open_draft(layered.workbench, DraftMode.OVERLAY)

    def is_held(draft: str) -> bool:
        place = find(Path(layered.workbench.directory, "drafts", draft, "place"))
        if place is not None:
            place.close()
        return place is not None

    assert (is_held(empty), is_held(full)) == (False, True)
    assert layered.run("cat a", empty)
