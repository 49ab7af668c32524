"""The ways out, by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.confine.probes.attempts import ATTEMPTS, Scene, read_secret, write_hook


def _scene(directory: Path) -> Scene:
    inside, outside = str(directory / "in"), str(directory / "out")
    return Scene(inside, outside, 0, 0, 0, "", "", "canary")


def test_there_are_as_many_as_are_promised_and_no_two_alike() -> None:
    assert len({attempt.__name__ for attempt in ATTEMPTS}) == len(ATTEMPTS) == 24


def test_what_is_not_refused_has_happened(tmp_path: Path) -> None:
    hooks = tmp_path / "in" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    write_hook(_scene(tmp_path))
    assert (hooks / "pre-commit").read_text() == "harmed"
    with pytest.raises(OSError, match="secret"):
        read_secret(_scene(tmp_path))
