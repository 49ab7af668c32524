"""A revision is left where the draft's own changes are others than at the last one."""

from __future__ import annotations

import pytest

from holdfast.workbench import list_drafts, revise
from holdfast.workbench.failures import RevisionMissing
from holdfast.workbench.operations.draft_state import own_of, stand
from holdfast.workbench.operations.recovery import opened
from holdfast.workbench.operations.revisions import changes_at, find_revision, next_number, revised
from tests.workbench.benches import Bench


def test_what_the_person_does_makes_no_revision(bench: Bench) -> None:
    draft = bench.draft()
    bench.run("echo ours > a")
    (bench.project / "d" / "b").write_bytes(b"theirs\n")

    assert revise(bench.workbench, draft, "nothing") is None
    assert bench.run("cat d/b") == "theirs\n"
    assert revise(bench.workbench, draft, "nothing") is None


def test_one_that_is_due_is_left_in_any_case(bench: Bench) -> None:
    bench.draft()
    with bench.workbench.held() as (held, _):
        draft = held.drafts.find()
        with opened(held, draft) as view:
            own = own_of(held, view, draft)
        first = revised(held, own, "due", is_due=True)

    assert [(each.number, each.cause) for each in first.revisions] == [(1, "due")]
    assert next_number(first) == 2
    assert list_drafts(bench.workbench) == (first,)


@pytest.mark.promise("W2")
def test_what_a_draft_changed_then_is_known_for_each_of_them(bench: Bench) -> None:
    bench.draft()
    bench.run("echo 1 > x")
    (bench.project / "c").write_bytes(b"theirs\n")
    bench.run("rm x; echo 2 > y")

    with bench.workbench.held() as (held, _):
        draft = held.drafts.find()
        changed = [
            [str(change.path) for change in changes_at(held, draft, find_revision(draft, number))]
            for number in (1, 2)
        ]
        with opened(held, draft) as view:
            assert own_of(held, view, draft).seal == stand(held, view, draft).seal

    assert changed == [["x"], ["y"]]
    with pytest.raises(RevisionMissing):
        find_revision(draft, 3)
