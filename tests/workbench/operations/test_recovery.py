"""Whatever is interrupted is finished or undone by whoever comes next, who says which."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.workbench import (
    Applied,
    NewContent,
    NewFile,
    PublishOrder,
    RestoreOrder,
    TransactionResult,
    Workbench,
    WorkbenchRecords,
    apply,
    checkpoint,
    list_drafts,
    publish,
    recover,
    restore,
    review,
    status,
    undo,
)
from holdfast.workbench.failures import MarkerDamaged
from tests.workbench.benches import COMMITTED, LINES, PREPARED, Bench, at, disturbed, killed

MOMENTS = [(PREPARED, True), (PREPARED, False), (COMMITTED, True), (COMMITTED, False)]
FINISHED = (COMMITTED, False)


def kinds(bench: Bench) -> list[str]:
    """What happened, in words."""
    return [
        each.kind for each in WorkbenchRecords.open(bench.workbench.directory / "meta").events()
    ]


@pytest.mark.promise("W4")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_publication_is_finished_or_undone(layered: Bench, moment: tuple[int, bool]) -> None:
    layered.draft()
    layered.run("echo new > a; rm d/b; echo c > c")
    before, seal = layered.sight(), review(layered.workbench).seal
    order = PublishOrder(sealed=seal, key="once")

    markers, is_before = moment
    assert killed(layered, markers, lambda bench: publish(bench, order), is_before=is_before)
    found = recover(layered.workbench)

    result = TransactionResult.FINISHED if moment == FINISHED else TransactionResult.UNDONE
    assert [(each.what, each.result) for each in found] == [("project", result)]
    if moment == FINISHED:
        assert review(layered.workbench).files == ()
        assert kinds(layered).count("published") == 1
    else:
        assert layered.sight() == before
        assert review(layered.workbench).seal == seal
    done = publish(layered.workbench, order)
    assert (done.count, done.remaining) == (3, 0)
    assert sorted(layered.sight()) == [b".git", b".git/HEAD", b"a", b"c", b"d"]
    assert kinds(layered).count("published") == 1
    assert recover(layered.workbench) == ()


@pytest.mark.promise("W4")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_part_of_a_file_is_finished_or_undone(layered: Bench, moment: tuple[int, bool]) -> None:
    layered.draft()
    layered.run("sed -i 's/1/one/;s/9/nine/' a")
    seal = review(layered.workbench).seal
    order = PublishOrder(sealed=seal, hunks={at("a"): frozenset({1})}, key="once")

    markers, is_before = moment
    assert killed(layered, markers, lambda bench: publish(bench, order), is_before=is_before)
    (layered.project / "d" / "b").write_bytes(b"theirs\n")
    if moment == FINISHED:  # what the person does now is no conflict with what was published
        (layered.project / "a").write_bytes(LINES.replace(b"1", b"one") + b"10\n")
        recover(layered.workbench)
        (left,) = review(layered.workbench).files
        assert left.added == 1
        return
    publish(layered.workbench, order)
    assert (layered.project / "a").read_bytes() == LINES.replace(b"1", b"one")


@pytest.mark.promise("W4")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_restore_is_finished_or_undone(layered: Bench, moment: tuple[int, bool]) -> None:
    kept = checkpoint(layered.workbench)
    old = layered.sight()
    (layered.project / "a").write_bytes(b"later\n")
    (layered.project / "e").mkdir()
    new = layered.sight()
    order = RestoreOrder(checkpoint=kept.id, key="once")

    markers, is_before = moment
    assert killed(layered, markers, lambda bench: restore(bench, order), is_before=is_before)
    recover(layered.workbench)

    assert layered.sight() == (old if moment == FINISHED else new)
    done = restore(layered.workbench, order)
    assert layered.sight() == old
    restore(layered.workbench, RestoreOrder(checkpoint=str(done.before)))
    assert layered.sight() == new


def publish_all(workbench: Workbench) -> object:
    """Publish whatever there is."""
    return publish(workbench, PublishOrder())


def first(workbench: Workbench) -> object:
    """A batch for which a draft is made."""
    return apply(workbench, None, [NewFile(at("x"), b""), NewContent(at("a"), b"n")], "k")


def batch(workbench: Workbench) -> object:
    """A batch into a draft."""
    return apply(workbench, "draft_", [NewContent(at("a"), b"n")], "k")


def back(workbench: Workbench) -> object:
    """All that the draft changed, undone."""
    return undo(workbench, to=0)


@pytest.mark.promise("W4")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("deed", [first, batch, back])
def test_what_was_done_to_a_draft_is_finished_or_undone(
    bench: Bench, deed: Callable[[Workbench], object], moment: tuple[int, bool]
) -> None:
    draft = bench.draft()
    bench.run("echo ours > a")
    before, seal = bench.sight(), review(bench.workbench, draft).seal

    markers, is_before = moment
    assert killed(bench, markers, deed, is_before=is_before)
    recover(bench.workbench)

    drafts = list_drafts(bench.workbench)
    assert bench.sight() == before
    if moment != FINISHED:
        assert [each.id for each in drafts] == [draft]
        assert review(bench.workbench, draft).seal == seal
    done = deed(bench.workbench)
    assert bench.sight() == before
    # A first batch makes a second draft with changes, so it has to be named.
    named = done.draft.id if isinstance(done, Applied) else draft
    assert "n" in bench.run("cat a", named)[:1] or review(bench.workbench, named).files == ()


@pytest.mark.promise("W4")
@pytest.mark.promise("W5")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_merge_is_finished_or_undone(bench: Bench, moment: tuple[int, bool]) -> None:
    bench.draft()
    bench.run("sed -i s/9/nine/ a")
    (bench.project / "a").write_bytes(LINES.replace(b"1", b"one"))
    theirs = bench.sight()

    markers, is_before = moment
    assert killed(bench, markers, publish_all, is_before=is_before)
    recover(bench.workbench)

    assert bench.sight() == theirs
    seen = review(bench.workbench)
    assert seen.conflicts == ()
    assert seen.merges == (() if moment == FINISHED else (at("a"),))


@pytest.mark.promise("W4")
@pytest.mark.promise("W8")
def test_a_damaged_marker_is_set_aside_and_said_once(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > a")
    kept = checkpoint(layered.workbench)
    assert killed(layered, PREPARED, publish_all, is_before=False)
    (layered.workbench.directory / "marker.json").write_bytes(b"{}")

    with pytest.raises(MarkerDamaged):
        status(layered.workbench)

    assert status(layered.workbench).recovered == ()
    restore(layered.workbench, RestoreOrder(checkpoint=kept.id))
    assert (layered.project / "a").read_bytes() == LINES


@pytest.mark.promise("W4")
def test_a_marker_that_comes_back_after_a_power_loss_changes_nothing(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > a")
    marker = layered.workbench.directory / "marker.committed.json"
    found: list[bytes] = []
    publish_all(
        disturbed(layered, COMMITTED, lambda: found.append(marker.read_bytes()), is_before=False)
    )
    assert not marker.exists()
    (layered.project / "a").write_bytes(b"edited since\n")
    (layered.project / "b").write_bytes(b"new since\n")
    review(layered.workbench)  # by which the draft is counted from what is there now
    said, drafts = kinds(layered), list_drafts(layered.workbench)

    marker.write_bytes(found[0])
    (recovered,) = recover(layered.workbench)

    assert (recovered.what, recovered.result, recovered.rescued) == (
        "project",
        TransactionResult.FINISHED,
        (),
    )
    assert not marker.exists()
    assert kinds(layered) == [*said, "recovered"]
    assert (layered.project / "a").read_bytes() == b"edited since\n"
    assert list_drafts(layered.workbench) == drafts
    assert recover(layered.workbench) == ()


def test_what_was_recovered_is_told_by_whatever_comes_next(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > a")
    assert killed(layered, PREPARED, publish_all, is_before=False)

    (found,) = status(layered.workbench).recovered

    assert (found.what, found.result, found.theirs, found.rescued) == (
        "project",
        TransactionResult.UNDONE,
        (),
        (),
    )
    assert kinds(layered)[-2:] == ["publish_undone", "recovered"]
