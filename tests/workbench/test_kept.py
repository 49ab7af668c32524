"""Whoever reads what is kept may do anything else with it at the same time."""

from __future__ import annotations

from pathlib import Path

from holdfast.workbench.kept import all_checkpoints
from holdfast.workbench.store import Store, Subject


def test_a_content_is_read_while_something_else_is_kept(tmp_path: Path, project: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        name, _ = store.put_content([bytes(9 * 2**20)])
        read = store.content(name)
        next(read)
        made = store.checkpoint(Subject(project))

        assert sum(map(len, read)) == 8 * 2**20
        assert store.vault.read(all_checkpoints) == store.checkpoints() == (made,)
