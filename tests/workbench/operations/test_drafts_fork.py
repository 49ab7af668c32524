"""A draft that was forked has what the other had, and goes its own way."""

from __future__ import annotations

import pytest

from holdfast.workbench import PublishOrder, fork_draft, publish, review
from holdfast.workbench.failures import PublishedChanged
from tests.workbench.benches import LINES, Bench


def changed(bench: Bench, draft: str) -> list[str]:
    """The paths that a draft changes."""
    return [str(each.path) for each in review(bench.workbench, draft).files]


@pytest.mark.promise("W2")
def test_both_have_the_same_and_go_their_own_way(bench: Bench) -> None:
    first = bench.draft()
    bench.run("echo 1 > x; rm -r d; mkdir e; ln -s x e/l", first)
    second = fork_draft(bench.workbench, first).id

    assert changed(bench, second) == changed(bench, first) == ["d", "d/b", "e", "e/l", "x"]
    assert bench.run("cat x e/../x; readlink e/l", second) == "1\n1\nx\n"
    bench.run("echo 2 > x; echo new > y", second)
    assert bench.run("cat x; ls", first) == "1\na\ne\nx\n"
    bench.run("echo 3 > x", first)
    assert bench.run("cat x y", second) == "2\nnew\n"


def test_one_without_changes_is_forked_to_one_without(bench: Bench) -> None:
    first = bench.draft()

    assert changed(bench, fork_draft(bench.workbench, first).id) == []


def test_what_the_person_changed_meanwhile_is_not_overwritten(bench: Bench) -> None:
    first = bench.draft()
    bench.run("echo draft > a", first)
    (bench.project / "a").write_bytes(b"person\n" + LINES)
    second = fork_draft(bench.workbench, first).id

    with pytest.raises(PublishedChanged):
        publish(bench.workbench, PublishOrder(draft=second, key="k"))
    assert (bench.project / "a").read_bytes() == b"person\n" + LINES
