"""One goes back with a draft as often as one likes, and the person keeps what is theirs."""

from __future__ import annotations

import pytest

from holdfast.workbench import (
    NewFile,
    apply,
    enter_draft,
    review,
    undo,
)
from holdfast.workbench.failures import BatchStale, PublishedChanged, RevisionMissing
from holdfast.workbench.operations.publish import PublishOrder, publish
from tests.workbench.benches import LINES, Bench, at


def changed(bench: Bench, draft: str | None = None) -> list[str]:
    """The paths that a draft changes."""
    return [str(each.path) for each in review(bench.workbench, draft).files]


@pytest.mark.promise("W2")
def test_one_goes_back_step_by_step_and_forward_again(bench: Bench) -> None:
    bench.draft()
    bench.run("echo 1 > x")
    bench.run("echo 2 > x; rm -r d")
    bench.run("mkdir e; echo 3 > e/x; echo 3 > a")

    assert undo(bench.workbench).back_to == 2
    assert bench.run("cat x; head -1 a; ls") == "2\n1\na\nx\n"
    assert undo(bench.workbench).back_to == 1
    assert bench.run("cat x d/b") == "1\nb\n"
    assert undo(bench.workbench).back_to == 0
    assert changed(bench) == []
    with pytest.raises(RevisionMissing):
        undo(bench.workbench)
    undo(bench.workbench, to=3)
    assert bench.run("cat e/x a x") == "3\n3\n2\n"
    assert changed(bench) == ["a", "d", "d/b", "e", "e/x", "x"]


@pytest.mark.promise("W2")
def test_undoing_is_a_step_like_any_other(bench: Bench) -> None:
    bench.draft()
    bench.run("echo 1 > x")
    bench.run("echo 2 > x")
    undo(bench.workbench, to=1)
    bench.run("echo 3 > x")

    assert undo(bench.workbench).back_to == 3
    assert bench.run("cat x") == "1\n"
    undo(bench.workbench, to=4)
    assert bench.run("cat x") == "3\n"


def test_what_nobody_left_a_revision_of_can_be_gone_back_to(bench: Bench) -> None:
    draft = bench.draft()
    with enter_draft(bench.workbench, draft) as inside:
        root = inside.view.root
        with open(f"/proc/self/fd/{root}/x", "wb") as file:
            file.write(b"1")
    apply(bench.workbench, draft, [NewFile(at("y"), b"y")])

    assert undo(bench.workbench).back_to == 1
    assert changed(bench) == ["x"]


@pytest.mark.promise("W5")
def test_going_back_leaves_what_the_person_changed_meanwhile(bench: Bench) -> None:
    bench.draft()
    bench.run("echo ours > x; echo ours > a")
    bench.run("echo more > y; rm a")
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    (bench.project / "c").write_bytes(b"theirs\n")

    undo(bench.workbench)

    assert bench.run("cat a d/b c x") == "ours\ntheirs\ntheirs\nours\n"
    assert changed(bench) == ["a", "x"]
    undo(bench.workbench)
    assert changed(bench) == []
    assert bench.run("cat a d/b c") == f"{LINES.decode()}theirs\ntheirs\n"


@pytest.mark.promise("W5")
def test_what_comes_back_does_not_go_over_what_the_person_changed_since(bench: Bench) -> None:
    bench.draft()
    bench.run("printf '\\0ours' > a")
    undo(bench.workbench)
    (bench.project / "a").write_bytes(b"\0theirs")
    bench.run("cat a")
    undo(bench.workbench, to=1)

    with pytest.raises(PublishedChanged):
        publish(bench.workbench, PublishOrder(sealed=review(bench.workbench).seal))

    assert (bench.project / "a").read_bytes() == b"\0theirs"


def test_revisions_that_there_are_not(layered: Bench) -> None:
    layered.draft()
    with pytest.raises(RevisionMissing):
        undo(layered.workbench)
    layered.run("echo 1 > x")
    for number in (-1, 2):
        with pytest.raises(RevisionMissing) as missing:
            undo(layered.workbench, to=number)
        assert missing.value.number == number
    assert layered.run("cat x") == "1\n"


@pytest.mark.promise("W2", "W13")
def test_a_revision_that_does_not_fit_any_more_changes_nothing(bench: Bench) -> None:
    bench.draft()
    bench.run("echo file > n")
    bench.run("rm n; mkdir n; echo 1 > n/f")
    publish(bench.workbench, PublishOrder())
    bench.run("echo 2 > n/f")
    before = review(bench.workbench)

    with pytest.raises(BatchStale):
        undo(bench.workbench, to=1)

    assert review(bench.workbench) == before
