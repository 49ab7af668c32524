"""A revision is left where the draft's own changes are others than at the last one."""

from __future__ import annotations

import pytest

from holdfast.workbench import list_drafts, revise
from holdfast.workbench.failures import RevisionMissing
from holdfast.workbench.operations.draft_state import draft_changes, draft_state
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
    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        with opened(handle, draft) as view:
            own = draft_changes(handle, view, draft)
        first = revised(handle, own, "due", is_due=True)

    assert [(each.number, each.cause) for each in first.revisions] == [(1, "due")]
    assert next_number(first) == 2
    assert list_drafts(bench.workbench) == (first,)


@pytest.mark.promise("W2")
def test_what_a_draft_changed_then_is_known_for_each_of_them(bench: Bench) -> None:
    bench.draft()
    bench.run("echo 1 > x")
    (bench.project / "c").write_bytes(b"theirs\n")
    bench.run("rm x; echo 2 > y")

    with bench.workbench.locked() as (handle, _):
        draft = handle.drafts.find()
        changed = [
            [str(change.path) for change in changes_at(handle, draft, find_revision(draft, number))]
            for number in (1, 2)
        ]
        with opened(handle, draft) as view:
            assert draft_changes(handle, view, draft).seal == draft_state(handle, view, draft).seal

    assert changed == [["x"], ["y"]]
    with pytest.raises(RevisionMissing):
        find_revision(draft, 3)
