"""Conflicts are resolved in the draft, and then they can be published."""

from __future__ import annotations

import pytest

from holdfast.workbench import (
    MergeSide,
    PublishOrder,
    Version,
    file_version,
    merge_draft,
    publish,
    review,
    undo,
)
from holdfast.workbench.failures import MergeNothing, PathMissing, PublishedChanged
from tests.workbench.benches import LINES, Bench, at

MARKED = b"<<<<<<< draft\nours\n=======\ntheirs\n>>>>>>> project\n" + LINES[2:]


@pytest.fixture
def torn(bench: Bench) -> Bench:
    """A draft and a project that changed the same line."""
    bench.draft()
    bench.run("sed -i 1s/.*/ours/ a; echo draft > other")
    (bench.project / "a").write_bytes(b"theirs\n" + LINES[2:])
    with pytest.raises(PublishedChanged):
        publish(bench.workbench, PublishOrder())
    return bench


@pytest.mark.promise("W5")
def test_what_clashes_is_marked_in_the_draft_and_counts_as_resolved(torn: Bench) -> None:
    done = merge_draft(torn.workbench)
    assert (done.merged, done.marked, done.unresolved) == ((), (at("a"),), ())
    assert torn.run("cat a").encode() == MARKED
    assert (torn.project / "a").read_bytes() == b"theirs\n" + LINES[2:]

    assert review(torn.workbench).conflicts == ()
    torn.run("sed -i '1d;3,5d' a; sed -i 1s/.*/both/ a")
    publish(torn.workbench, PublishOrder(sealed=review(torn.workbench).seal))
    assert (torn.project / "a").read_bytes() == b"both\n" + LINES[2:]
    assert (torn.project / "other").read_bytes() == b"draft\n"


@pytest.mark.promise("W5")
@pytest.mark.parametrize(
    ("side", "line"), [(MergeSide.OURS, b"ours\n"), (MergeSide.THEIRS, b"theirs\n")]
)
def test_one_version_is_taken(torn: Bench, side: MergeSide, line: bytes) -> None:
    done = merge_draft(torn.workbench, None, [at("a")], side)
    assert done.taken == (at("a"),)
    publish(torn.workbench, PublishOrder(sealed=review(torn.workbench).seal))
    assert (torn.project / "a").read_bytes() == line + LINES[2:]
    assert (torn.project / "other").read_bytes() == b"draft\n"
    assert review(torn.workbench).files == ()


@pytest.mark.promise("W5")
def test_a_later_change_of_the_project_is_a_conflict_again(torn: Bench) -> None:
    merge_draft(torn.workbench, side=MergeSide.OURS)
    (torn.project / "a").write_bytes(b"later\n" + LINES[2:])
    with pytest.raises(PublishedChanged):
        publish(torn.workbench, PublishOrder())
    assert (torn.project / "a").read_bytes() == b"later\n" + LINES[2:]


def test_a_merge_is_taken_back_by_undo(torn: Bench) -> None:
    merge_draft(torn.workbench)
    undo(torn.workbench)
    assert torn.run("head -1 a").strip() == "ours"


def test_lines_that_go_together_are_merged(bench: Bench) -> None:
    bench.draft()
    bench.run("sed -i 1s/.*/ours/ a")
    (bench.project / "a").write_bytes(LINES[:-2] + b"theirs\n")
    done = merge_draft(bench.workbench)
    assert (done.merged, done.marked) == ((at("a"),), ())
    assert bench.run("sed -n '1p;$p' a").split() == ["ours", "theirs"]


@pytest.mark.promise("W5")
@pytest.mark.parametrize("side", [MergeSide.OURS, MergeSide.THEIRS])
def test_what_lines_cannot_decide_is_left_until_a_side_is_chosen(
    bench: Bench, side: MergeSide
) -> None:
    (bench.project / "gone").write_text("gone\n")
    (bench.project / "kept").write_text("kept\n")
    (bench.project / "binary").write_bytes(b"\0one")
    bench.draft()
    bench.run(
        "echo ours > gone; rm kept; printf '\\0ours' > binary; echo ours > both; mkdir way;"
        " echo x > way/x"
    )
    (bench.project / "gone").unlink()
    (bench.project / "kept").write_text("theirs\n")
    (bench.project / "binary").write_bytes(b"\0theirs")
    (bench.project / "both").symlink_to("elsewhere")
    (bench.project / "way").write_text("theirs\n")
    open_ones = merge_draft(bench.workbench).unresolved
    assert {at("gone"), at("kept"), at("binary"), at("both")} <= set(open_ones)
    before = bench.sight()

    merge_draft(bench.workbench, side=side)
    seen = review(bench.workbench)
    assert (seen.conflicts, bench.sight()) == ((), before)
    publish(bench.workbench, PublishOrder(sealed=seen.seal))

    after = bench.sight()
    if side is MergeSide.THEIRS:
        assert after == before
    else:
        assert after[b"gone"][2] == b"ours\n" and b"kept" not in after
        assert after[b"binary"][2] == b"\0ours" and after[b"both"][2] == b"ours\n"
        assert after[b"way/x"][2] == b"x\n"


def test_where_there_is_no_conflict_it_is_said(torn: Bench) -> None:
    with pytest.raises(MergeNothing):
        merge_draft(torn.workbench, None, [at("a"), at("other")])
    assert torn.run("head -1 a").strip() == "ours"


@pytest.mark.promise("W5")
def test_each_version_can_be_read(torn: Bench) -> None:
    firsts = {
        version: file_version(torn.workbench, at("a"), version).content.split(b"\n")[0]
        for version in Version
    }
    assert firsts == {Version.DRAFT: b"ours", Version.PROJECT: b"theirs", Version.BASE: b"1"}
    torn.run("ln -s a link")
    assert file_version(torn.workbench, at("link"), Version.DRAFT).content == b"a"
    for path, version in ((at("other"), Version.PROJECT), (at("d"), Version.DRAFT)):
        with pytest.raises(PathMissing):
            file_version(torn.workbench, path, version)
