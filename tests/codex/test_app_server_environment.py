"""What Codex inherits when nobody says otherwise."""

from __future__ import annotations

import os

import pytest

from holdfast.codex.app_server import inherited


def test_our_environment_is_handed_on_as_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SPECIMEN", "here")
    ours = inherited()
    ours["HOLDFAST_SPECIMEN"] = "changed"

    assert inherited() == dict(os.environ)
    assert inherited()["HOLDFAST_SPECIMEN"] == "here"
