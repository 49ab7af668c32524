"""How a project and its drafts stand."""

from __future__ import annotations

from holdfast.workbench import (
    WorkbenchStatus,
    checkpoint,
    checkpoints,
    list_drafts,
    recover,
    status,
)
from tests.workbench.benches import LINES, Bench, at


def test_a_project_that_nobody_did_anything_to(layered: Bench) -> None:
    workbench = layered.workbench

    assert status(workbench) == WorkbenchStatus(id=workbench.id, project=layered.project)
    assert list_drafts(workbench) == checkpoints(workbench) == recover(workbench) == ()
    assert not (layered.base / "state").exists(), "to ask leaves something behind"
    with workbench.locked():
        pass
    assert status(workbench) == WorkbenchStatus(id=workbench.id, project=layered.project)


def test_every_draft_with_what_stands_in_its_way(bench: Bench) -> None:
    first, _ = bench.draft(), bench.draft()
    bench.run("sed -i s/9/nine/ a; echo ours > d/b", first)
    (bench.project / "a").write_bytes(LINES.replace(b"1", b"one"))
    (bench.project / "d" / "b").write_bytes(b"theirs\n")
    kept = checkpoint(bench.workbench)

    found = status(bench.workbench)

    assert [each.draft.id for each in found.drafts] == [first]  # the other has no changes
    (one,) = found.drafts
    assert (one.changed, one.conflicts, one.merges) == (2, (at("d/b"),), (at("a"),))
    assert found.last == kept


def test_a_draft_that_cannot_be_read_is_named(layered: Bench) -> None:
    draft = layered.draft()
    (layered.workbench.directory / "drafts" / draft / "draft.json").write_bytes(b"{}")

    found = status(layered.workbench)

    assert found.drafts == ()
    assert [each.draft for each in found.damaged] == [draft]
