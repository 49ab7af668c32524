"""What is remembered about the draft that sandboxes work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.confine.model import Holder
from holdfast.confine.place.locations import LayerLocations, remember_layers, remembered

HOLDER = Holder(
    directory="/drafts/\udcff",
    project="/project",
    also=("/also",),
    pid=1,
    started=2,
    since=3.0,
    boot="boot",
    namespace=4,
)
DRAFT = LayerLocations(b"/drafts/\xff", (b"/project", b"/also"))


@pytest.mark.parametrize(
    ("path", "layer"),
    [
        ("/project", "/drafts/\udcff/upper"),
        ("/project/below/.codex", "/drafts/\udcff/upper/below/.codex"),
        ("/also/.codex", "/drafts/\udcff/upper-1/.codex"),
        ("/project-not/.codex", None),
        ("/", None),
    ],
)
def test_a_draft_keeps_what_it_covers(path: str, layer: str | None) -> None:
    assert DRAFT.layer(path) == layer
    assert LayerLocations().layer(path) is None


def test_what_was_told_last_is_remembered(tmp_path: Path) -> None:
    state = tmp_path / "not" / "there"
    assert remembered(state) == LayerLocations()
    for holder, expected in ((HOLDER, DRAFT), (HOLDER, DRAFT), (None, LayerLocations())):
        remember_layers(state, holder)
        assert remembered(state) == expected
    (state / "place.json").write_text("{")
    assert remembered(state) is None
    remember_layers(state, HOLDER)
    assert remembered(state) == DRAFT
    assert [path.name for path in state.iterdir()] == ["place.json"]
