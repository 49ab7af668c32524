"""A review shows all that a draft changes, and seals it."""

from __future__ import annotations

import pytest

from holdfast.workbench import Conflict, review
from holdfast.workbench.diff.three_way import ConflictReason
from tests.workbench.benches import LINES, Bench, at


@pytest.mark.promise("W6")
def test_the_seal_is_of_all_that_the_draft_changes_and_of_nothing_else(bench: Bench) -> None:
    bench.draft()
    nothing = review(bench.workbench).seal
    bench.run("echo new > a")
    first = review(bench.workbench).seal
    bench.run("touch -d 2001-01-01 a")
    assert review(bench.workbench, paths=[at("d")]).seal == first
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    assert review(bench.workbench).seal == first
    bench.run("chmod 0600 a")
    second = review(bench.workbench).seal
    bench.run("chmod 0644 a")

    assert len({nothing, first, second}) == 3
    assert review(bench.workbench).seal == first


def test_files_are_shown_line_by_line_and_all_else_by_what_became_of_it(layered: Bench) -> None:
    layered.draft()
    layered.run("sed -i s/5/five/ a; rm d/b; ln -s a l; mkdir e; printf '\\0' > z; chmod 0700 d")

    found = {str(each.path): each for each in review(layered.workbench).files}

    assert sorted(found) == ["a", "d", "d/b", "e", "l", "z"]
    assert found["a"].text.startswith(
        b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@ change 1\n"
    )
    assert (found["a"].added, found["a"].removed, found["a"].hunks) == (1, 1, 1)
    assert (found["d/b"].added, found["d/b"].removed) == (0, 1)
    assert found["z"].is_binary
    assert found["l"].text.endswith(b"+a\n\\ No newline at end of file\n")
    assert not found["e"].text and not found["d"].text
    assert [note.text for note in found["d"].notes] == ["mode 755 to 700"]


def test_only_what_was_asked_for_is_shown(layered: Bench) -> None:
    layered.draft()
    layered.run("echo new > a; echo new > d/b; echo new > d/c; echo x > .git/x")

    found = review(layered.workbench, paths=[at("d"), at("nothing")])

    assert [str(each.path) for each in found.files] == ["d/b", "d/c"]
    assert found.withheld == ()


@pytest.mark.promise("W5")
def test_it_says_what_will_be_merged_and_what_somebody_must_decide(bench: Bench) -> None:
    bench.draft()
    bench.run("sed -i s/9/nine/ a; echo ours > d/b; echo ours > c")
    (bench.project / "a").write_bytes(LINES.replace(b"1", b"one"))
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    (bench.project / "c").write_bytes(b"theirs\n")

    found = review(bench.workbench)

    assert found.merges == (at("a"),)
    assert found.conflicts == (
        Conflict(path=at("c"), reason=ConflictReason.BOTH_CREATED),
        Conflict(path=at("d/b"), reason=ConflictReason.BOTH_CHANGED),
    )
