"""What whoever holds a workbench has in hand."""

from __future__ import annotations

import pytest

from holdfast.workbench import checkpoints, prune_checkpoints
from holdfast.workbench.failures import DraftDamaged
from holdfast.workbench.handle import encodable
from tests.workbench.benches import Bench


@pytest.mark.promise("W11")
def test_what_drafts_build_on_is_in_use(bench: Bench) -> None:
    draft = bench.draft()
    with bench.workbench.locked() as (handle, _):
        assert handle.in_use() == frozenset()
    bench.run("echo ours > a")
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    bench.run("echo more > a")

    with bench.workbench.locked() as (handle, _):
        found = handle.drafts.find(draft)
        wanted = {found.base}
        for each in found.revisions:
            wanted |= {each.checkpoint, each.base}
        assert handle.in_use() == wanted
        assert len(found.revisions) == 2


@pytest.mark.promise("W11")
def test_nothing_goes_while_a_draft_cannot_say_what_it_builds_on(layered: Bench) -> None:
    draft = layered.draft()
    with layered.workbench.locked() as (handle, _):
        (handle.drafts.home(handle.drafts.find(draft)) / "draft.json").write_text("{")
        with pytest.raises(DraftDamaged):
            handle.in_use()
    with pytest.raises(DraftDamaged):
        prune_checkpoints(layered.workbench)


def test_any_bytes_can_be_written_down() -> None:
    assert encodable("ä\udcff") == "ä\\udcff"


def test_a_look_adds_nothing_if_it_is_kept_already(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        first = handle.look()
        assert handle.look() == first
        (layered.project / "a").write_bytes(b"new\n")
        assert handle.look() != first
    assert len(checkpoints(layered.workbench)) == 2


def test_every_site_has_a_marker_of_its_own_and_the_same_stage(layered: Bench) -> None:
    layered.draft()
    with layered.workbench.locked() as (handle, _), handle.project_site() as site:
        marker = handle.marker_of(handle.drafts.find())
        assert site.marker == layered.workbench.directory / "marker.json"
        assert marker != site.marker
        assert site.stage == f".holdfast-stage-{layered.workbench.id}"
