"""Whoever reads what is kept may do anything else with it at the same time."""

from __future__ import annotations

from pathlib import Path

from holdfast.nouns import RelativePath
from holdfast.workbench.store.store import CheckpointSource, Store, all_checkpoints


def test_a_content_is_read_while_something_else_is_kept(tmp_path: Path, project: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        name, _ = store.put_content([bytes(9 * 2**20)])
        read = store.content(name)
        next(read)
        made = store.checkpoint(CheckpointSource(project))

        assert sum(map(len, read)) == 8 * 2**20
        assert store.object_store.read(all_checkpoints) == store.checkpoints() == (made,)


def test_what_differs_is_told_as_often_as_one_asks(tmp_path: Path, project: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        made = [store.checkpoint(CheckpointSource(project))]
        for number in range(6):
            (project / f"new{number}").write_text("n")
            made.append(store.checkpoint(CheckpointSource(project)))
        for _ in range(2):
            for number, after in enumerate(made):
                found = [str(each.path) for each in store.changes(made[0], after)]
                assert found == [f"new{one}" for one in range(number)]
                only = [RelativePath.of("new1")]
                near = store.changes_near(made[0], after, only)
                assert [each.path for each in near] == (only if number > 1 else [])
