"""A sandbox and a place, made in processes of their own."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from tests.app.probes.running import run_probe

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="Linux only")


def test_a_sandbox_answers_with_its_strength() -> None:
    facts = run_probe("sandbox", "strength")["facts"]

    assert facts["strength"] in {"full", "reduced", "none"}
    assert (facts["strength"] == "full") == (facts["reasons"] == [])


def test_a_place_is_made_or_the_reason_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    facts = run_probe("sandbox", "place", tmp_path)["facts"]

    assert facts["is_made"] or facts["reason"]
    assert os.listdir(tmp_path) == []
