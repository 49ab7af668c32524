"""A draft that was made for a batch goes if the batch came to nothing."""

from __future__ import annotations

import pytest

from holdfast.workbench import list_drafts, open_draft
from holdfast.workbench.failures import BatchStale
from holdfast.workbench.first_batch import first_batch
from tests.workbench.benches import Bench


@pytest.mark.promise("W2")
def test_it_goes_with_a_failure_and_others_stay(layered: Bench) -> None:
    other = layered.draft()

    with (
        pytest.raises(BatchStale),
        layered.workbench.held() as (held, _),
        first_batch(held, "one") as made,
    ):
        assert {each.id for each in held.drafts.all()} == {other, made.id}
        raise BatchStale(paths=())

    assert [each.id for each in list_drafts(layered.workbench)] == [other]


@pytest.mark.promise("W2")
def test_whoever_comes_after_a_kill_removes_it(layered: Bench) -> None:
    other = layered.draft()
    with (
        pytest.raises(KeyboardInterrupt),
        layered.workbench.held() as (held, _),
        first_batch(held, "one"),
    ):
        raise KeyboardInterrupt

    assert [each.id for each in list_drafts(layered.workbench)] == [other]
    assert not (layered.workbench.directory / "first-batch.json").exists()


@pytest.mark.parametrize("damaged", [b"{", b'{"key":"\xff"}'])
def test_what_is_damaged_before_a_draft_was_made_removes_none(
    layered: Bench, damaged: bytes
) -> None:
    draft = open_draft(layered.workbench).id
    (layered.workbench.directory / "first-batch.json").write_bytes(damaged)

    assert [each.id for each in list_drafts(layered.workbench)] == [draft]
