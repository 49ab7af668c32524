"""A draft can be entered, gone back with as often as one likes, and discarded; nothing else."""

from __future__ import annotations

import pytest

from holdfast.workbench import (
    discard,
    list_drafts,
    open_draft,
    review,
    revise,
)
from holdfast.workbench.failures import DraftMerged, DraftMissing
from holdfast.workbench.model import DraftMode
from holdfast.workbench.operations.publish import PublishOrder, publish
from tests.workbench.benches import LINES, Bench


def changed(bench: Bench, draft: str | None = None) -> list[str]:
    """The paths that a draft changes."""
    return [str(each.path) for each in review(bench.workbench, draft).files]


@pytest.mark.promise("W2")
def test_every_command_leaves_a_revision_and_one_that_does_nothing_none(bench: Bench) -> None:
    draft = bench.draft()
    bench.run("echo 1 > x")
    bench.run("cat a")
    bench.run("echo 2 > x")

    (found,) = list_drafts(bench.workbench)
    assert found.id == draft
    assert [(each.number, each.cause) for each in found.revisions] == [
        (1, "echo 1 > x"),
        (2, "echo 2 > x"),
    ]
    assert revise(bench.workbench, draft, "nothing") is None


@pytest.mark.promise("W1")
def test_only_discarding_removes_a_draft(bench: Bench) -> None:
    before = bench.sight()
    first, second = bench.draft(), bench.draft()
    bench.run("echo 1 > x", first)
    bench.run("echo 2 > x", second)
    assert bench.run("cat x", first) == "1\n"

    assert discard(bench.workbench, first).id == first

    assert [each.id for each in list_drafts(bench.workbench)] == [second]
    assert bench.run("cat x") == "2\n"
    discard(bench.workbench)
    assert list_drafts(bench.workbench) == ()
    with pytest.raises(DraftMissing):
        discard(bench.workbench)
    assert bench.sight() == before


def test_a_draft_that_cannot_be_read_can_be_discarded(layered: Bench) -> None:
    draft = layered.draft()
    record = layered.workbench.directory / "drafts" / draft / "draft.json"
    record.write_bytes(b"{}")

    assert discard(layered.workbench, draft).id == draft

    assert not record.parent.exists()


def test_several_drafts_of_one_project_are_published_one_after_the_other(bench: Bench) -> None:
    first, second = bench.draft(), bench.draft()
    bench.run("sed -i s/1/one/ a", first)
    bench.run("sed -i s/9/nine/ a; echo new > c", second)

    for draft in (first, second):
        seal = review(bench.workbench, draft).seal
        if draft == second:
            with pytest.raises(DraftMerged):
                publish(bench.workbench, PublishOrder(draft=draft, sealed=seal))
            seal = review(bench.workbench, draft).seal
        publish(bench.workbench, PublishOrder(draft=draft, sealed=seal))

    text = LINES.replace(b"1", b"one").replace(b"9", b"nine")
    assert (bench.project / "a").read_bytes() == text
    assert changed(bench, first) == changed(bench, second) == []
    assert bench.run("cat c", first) == "new\n"


def test_the_mode_is_the_best_that_is_possible(layered: Bench) -> None:
    assert open_draft(layered.workbench).mode is DraftMode.OVERLAY
