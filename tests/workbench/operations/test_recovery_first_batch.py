"""A draft that was made for a batch goes if the batch came to nothing."""

from __future__ import annotations

from typing import NoReturn

import pytest

from holdfast.workbench import NewFile, apply, list_drafts, open_draft
from holdfast.workbench.failures import BatchStale, RevisionUnwritten
from holdfast.workbench.operations.recovery import first_batch
from holdfast.world.disk import SystemFile
from holdfast.world.failures import DiskFull
from tests.workbench.benches import COMMITTED, Bench, at, disturbed


@pytest.mark.promise("W2")
def test_it_goes_with_a_failure_and_others_stay(layered: Bench) -> None:
    other = layered.draft()

    with (
        pytest.raises(BatchStale),
        layered.workbench.locked() as (handle, _),
        first_batch(handle, "one") as made,
    ):
        assert {each.id for each in handle.drafts.all()} == {other, made.id}
        raise BatchStale(paths=())

    assert [each.id for each in list_drafts(layered.workbench)] == [other]


@pytest.mark.promise("W2")
def test_whoever_comes_after_a_kill_removes_it(layered: Bench) -> None:
    other = layered.draft()
    with (
        pytest.raises(KeyboardInterrupt),
        layered.workbench.locked() as (handle, _),
        first_batch(handle, "one"),
    ):
        raise KeyboardInterrupt

    assert [each.id for each in list_drafts(layered.workbench)] == [other]
    assert not (layered.workbench.directory / "first-batch.json").exists()


@pytest.mark.promise("W2", "W7")
def test_on_a_disk_that_is_full_right_after_the_batch_it_stays(
    layered: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise DiskFull(path="any")

    def fill() -> None:
        monkeypatch.setattr(SystemFile, "append", full)

    workbench = disturbed(layered, COMMITTED, fill, is_before=False)

    with pytest.raises(RevisionUnwritten) as refused:
        apply(workbench, None, [NewFile(at("new"), b"ours\n")])
    monkeypatch.undo()

    (draft,) = list_drafts(layered.workbench)
    assert draft.id == refused.value.draft
    assert layered.run("cat new", draft.id) == "ours\n"
    assert not (layered.workbench.directory / "first-batch.json").exists()


@pytest.mark.parametrize("damaged", [b"{", b'{"key":"\xff"}'])
def test_what_is_damaged_before_a_draft_was_made_removes_none(
    layered: Bench, damaged: bytes
) -> None:
    draft = open_draft(layered.workbench).id
    (layered.workbench.directory / "first-batch.json").write_bytes(damaged)

    assert [each.id for each in list_drafts(layered.workbench)] == [draft]
