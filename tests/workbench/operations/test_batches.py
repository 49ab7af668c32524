"""A batch lands whole or not at all, once, and on the draft that it was made for."""

from __future__ import annotations

import os

import pytest

from holdfast.workbench import (
    BatchAttempt,
    Chmod,
    DeletePath,
    FileStep,
    NewContent,
    NewDirectory,
    NewFile,
    NewLink,
    Rename,
    WorkbenchRecords,
    apply,
    list_drafts,
    review,
)
from holdfast.workbench.failures import BatchRefused, BatchStale, DraftMissing
from holdfast.workbench.model import DraftMode
from tests.workbench.benches import LINES, Bench, at

STEPS: list[FileStep] = [
    NewFile(at("new/deep/x"), b"x", 0o600),
    NewDirectory(at("empty"), 0o700),
    NewLink(at("link"), b"a"),
    NewContent(at("a"), b"other\n", expected=LINES),
    Rename(at("d"), at("moved")),
    Chmod(at("moved/b"), 0o755),
    DeletePath(at("new/deep/x")),
]


def attempts(bench: Bench) -> list[tuple[str, str, str | None]]:
    """What is written down of every try."""
    records = WorkbenchRecords.open(bench.workbench.directory / "meta")
    return [(each.batch, each.outcome, each.failure) for each in records.attempts()]


@pytest.mark.promise("W2")
def test_all_of_it_lands_in_the_draft_and_nothing_in_the_project(bench: Bench) -> None:
    before, draft = bench.sight(), bench.draft()

    applied = apply(bench.workbench, draft, STEPS, "one")

    assert (applied.draft.id, applied.revision.number) == (draft, 1)
    assert bench.sight() == before
    said = bench.run(
        "cat a moved/b; readlink link; stat -c '%a %F' empty moved/b new/deep; [ ! -e d ]"
    )
    assert said == "other\nb\na\n700 directory\n755 regular file\n755 directory\n"
    assert attempts(bench) == [("one", "begun", None), ("one", "applied", None)]


@pytest.mark.promise("W2")
@pytest.mark.parametrize(
    "unfit",
    [
        NewFile(at("a"), b""),
        NewContent(at("a"), b"", expected=b"not that"),
        DeletePath(at("d")),
        DeletePath(at("nothing")),
        Rename(at("a"), at("d/b/c")),
        Chmod(at("nothing"), 0o600),
    ],
)
def test_if_one_does_not_fit_none_is_made(layered: Bench, unfit: FileStep) -> None:
    draft = layered.draft()

    with pytest.raises(BatchRefused):
        apply(layered.workbench, draft, [NewFile(at("new"), b""), unfit], "one")

    assert review(layered.workbench).files == ()
    assert attempts(layered) == [("one", "failed", "BATCH_REFUSED")]
    assert list_drafts(layered.workbench)[0].revisions == ()


@pytest.mark.promise("W9")
def test_what_cannot_be_kept_is_not_touched(bench: Bench) -> None:
    os.mkfifo(bench.project / "d" / "pipe")
    draft = bench.draft()
    bench.run("[ -e d/pipe ] || mkfifo d/pipe")

    for step in (Rename(at("d"), at("e")), DeletePath(at("d/pipe")), NewFile(at("d/pipe"), b"")):
        with pytest.raises(BatchRefused):
            apply(bench.workbench, draft, [step])


@pytest.mark.promise("W2")
def test_without_a_draft_one_is_made_and_a_failed_first_batch_leaves_none(bench: Bench) -> None:
    with pytest.raises(BatchRefused):
        apply(bench.workbench, None, [DeletePath(at("nothing"))], "first")
    assert os.listdir(bench.workbench.directory / "drafts") == []
    assert list_drafts(bench.workbench) == ()

    made = apply(bench.workbench, None, [NewFile(at("new"), b"new")], "second")

    assert [each.id for each in list_drafts(bench.workbench)] == [made.draft.id]
    assert [str(each.path) for each in review(bench.workbench).files] == ["new"]
    assert made.draft.mode is DraftMode.OVERLAY


@pytest.mark.promise("W2")
def test_said_twice_it_is_done_once_with_the_same_answer(bench: Bench) -> None:
    draft = bench.draft()
    first = apply(bench.workbench, draft, [NewFile(at("new"), b"new")], "one")
    bench.run("echo later > new")

    again = apply(bench.workbench, draft, [NewFile(at("new"), b"new")], "one")

    assert again.revision == first.revision
    assert bench.run("cat new") == "later\n"


@pytest.mark.promise("W2")
def test_what_is_tried_again_is_checked_again(bench: Bench) -> None:
    draft = bench.draft()
    steps = [NewContent(at("a"), b"new\n"), Chmod(at("a"), 0o755)]
    bench.run("echo 1 > x")
    _begin(bench, "one")
    bench.run("echo other > a")

    with pytest.raises(BatchStale) as stale:
        apply(bench.workbench, draft, steps, "one")

    assert stale.value.paths == ("a",)
    assert bench.run("cat a") == "other\n"
    assert attempts(bench)[-1] == ("one", "failed", "BATCH_STALE")
    bench.run(f"printf '{LINES.decode()}' > a")
    apply(bench.workbench, draft, steps, "one")
    assert bench.run("cat a; stat -c %a a") == "new\n755\n"


@pytest.mark.promise("W2")
def test_what_was_done_and_not_said_is_not_done_again(bench: Bench) -> None:
    draft = bench.draft()
    bench.run("echo 1 > x")
    _begin(bench, "one")
    bench.run("echo new > a")

    applied = apply(bench.workbench, draft, [NewContent(at("a"), b"new\n")], "one")

    assert applied.revision.number == 3
    assert bench.run("cat a") == "new\n"


def test_one_that_was_refused_may_come_back_mended(layered: Bench) -> None:
    draft = layered.draft()
    with pytest.raises(BatchRefused):
        apply(layered.workbench, draft, [NewFile(at("a"), b"new\n")], "one")
    layered.run("echo other > a")

    apply(layered.workbench, draft, [NewContent(at("a"), b"new\n")], "one")

    assert layered.run("cat a") == "new\n"


def test_another_time_of_writing_is_seen_by_tools_that_look_at_it(layered: Bench) -> None:
    os.utime(layered.project / "a", (1, 1))
    os.utime(layered.project / "d" / "b", (1, 1))
    draft = layered.draft()
    steps = [NewContent(at("a"), b"new\n"), NewFile(at("new"), b""), Rename(at("d/b"), at("c"))]

    apply(layered.workbench, draft, steps)

    young, new, moved = layered.run("stat -c %Y a new c").split()
    assert int(young) > 1 < int(new)
    assert int(moved) == 1


def test_a_draft_that_there_is_not(layered: Bench) -> None:
    with pytest.raises(DraftMissing):
        apply(layered.workbench, "draft_nothing", STEPS)


def _begin(bench: Bench, key: str) -> None:
    """Write down what a try that was killed leaves behind."""
    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        before = draft.revisions[-1].checkpoint
        at_once = handle.records.now()
        begun = BatchAttempt(at=at_once, batch=key, draft=draft.id, outcome="begun", before=before)
        handle.records.attempt(begun)
